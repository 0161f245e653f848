#include "device/same_call.h"

#include "base/assert.h"

bool device_same_matrix(const device_matrix *a, const device_matrix *b) {
    return a->data == b->data && a->rows == b->rows && a->columns == b->columns &&
           a->stride == b->stride && a->dtype == b->dtype;
}

static bool same_matrices(const device_matrix *a, const device_matrix *b, int count) {
    for (int i = 0; i < count; i++)
        if (!device_same_matrix(&a[i], &b[i])) return false;
    return true;
}

/* --- attributes, by the kernels that have them --- */

/* Of `a` and `b`, what the caller compares. */
#define SAME(of, field) (a->of.field == b->of.field)

static bool same_attention(const device_attributes *a, const device_attributes *b) {
    return SAME(attention, heads) && SAME(attention, kv_heads) && SAME(attention, head_dim) &&
           SAME(attention, sequences) && SAME(attention, length) && SAME(attention, scale) &&
           SAME(attention, softcap) && SAME(attention, dropout) && SAME(attention, whole_heads) &&
           SAME(attention, first_head) && SAME(attention, window) && SAME(attention, buckets) &&
           SAME(attention, most_distance) && SAME(attention, bidirectional) &&
           SAME(attention, all_kv_heads) && SAME(attention, contexts) && SAME(attention, context) &&
           SAME(attention, alibi) && SAME(attention, alibi_heads) && SAME(attention, alibi_first);
}

static bool same_delta(const device_attributes *a, const device_attributes *b) {
    return SAME(delta, key_heads) && SAME(delta, value_heads) && SAME(delta, sequences) &&
           SAME(delta, length);
}

static bool same_words(const device_words *a, const device_words *b) {
    return a->first == b->first && a->count == b->count && a->all == b->all;
}

static bool same_head(const device_attributes *a, const device_attributes *b) {
    return SAME(head, scale) && SAME(head, softcap) && SAME(head, preference) && SAME(head, beta) &&
           SAME(head, length) && SAME(head, temperature) && SAME(head, weight) && SAME(head, own) &&
           same_words(&a->head.words, &b->head.words);
}

static bool same_update(const device_attributes *a, const device_attributes *b) {
    return SAME(update, epsilon) && SAME(update, weight_decay) && SAME(update, lr_scale) &&
           SAME(update, min_coeff) && SAME(update, max_coeff) && SAME(update, momentum) &&
           SAME(update, matrices) && SAME(update, gram) && SAME(update, clip) &&
           SAME(update, least_scale) && SAME(update, first) && SAME(update, trust) &&
           SAME(update, own_rate) && SAME(update, scaled) && SAME(update, decoupled) &&
           SAME(update, nesterov) && SAME(update, averages) && SAME(update, keeps);
}

static bool same_norm(const device_attributes *a, const device_attributes *b) {
    return SAME(norm, epsilon) && SAME(norm, groups) && SAME(norm, plus_one);
}

static bool same_rope(const device_attributes *a, const device_attributes *b) {
    return SAME(rope, heads) && SAME(rope, head_dim) && SAME(rope, rotary_dim) &&
           SAME(rope, interleaved);
}

static bool same_embedding(const device_attributes *a, const device_attributes *b) {
    return SAME(embedding, padded) && SAME(embedding, padding) && SAME(embedding, first) &&
           same_words(&a->embedding.words, &b->embedding.words);
}

static bool same_linear(const device_attributes *a, const device_attributes *b) {
    bool same = SAME(linear, transposed) && SAME(linear, whole) && SAME(linear, cut_inputs) &&
                SAME(linear, pieces) && SAME(linear, runs);
    for (int i = 0; i < DEVICE_LINEAR_RUNS; i++) same &= SAME(linear, run_end[i]);
    return same;
}

static bool same_magnitude(const device_attributes *a, const device_attributes *b) {
    return SAME(magnitude, transposed) && SAME(magnitude, columns) && SAME(magnitude, scale);
}

static bool same_power(const device_attributes *a, const device_attributes *b) {
    return SAME(power, first) && SAME(power, seed) && SAME(power, weight) && SAME(power, ranks) &&
           SAME(power, epsilon) && SAME(power, draws) && SAME(power, fresh);
}

static bool same_join(const device_attributes *a, const device_attributes *b) {
    bool same = true;
    for (int i = 0; i < DEVICE_MOST_JOINED; i++) same &= SAME(join, end[i]);
    return same;
}

/* Without a default, so that the compiler asks for each new kernel. */
static bool same_of_kernel(device_kernel kernel, const device_attributes *a,
                           const device_attributes *b) {
#define DEVICE_UPDATE(NAME, ...) case DEVICE_##NAME:
    switch (kernel) {
#include "device/kernels.def"
    case DEVICE_ORTHOGONALISE:
        return same_update(a, b);
    case DEVICE_EMBEDDING:
    case DEVICE_EMBEDDING_BACKWARD:
        return same_embedding(a, b);
    case DEVICE_LAYER_NORM:
    case DEVICE_LAYER_NORM_BACKWARD:
    case DEVICE_RMS_NORM:
    case DEVICE_RMS_NORM_BACKWARD:
    case DEVICE_LAYER_NORM_SUMS:
    case DEVICE_RMS_NORM_SUMS:
        return same_norm(a, b);
    case DEVICE_ROPE:
    case DEVICE_ROPE_BACKWARD:
        return same_rope(a, b);
    case DEVICE_SPLIT_QKV:
    case DEVICE_SPLIT_QKV_BACKWARD:
        return SAME(split_qkv, groups) && SAME(split_qkv, parts);
    case DEVICE_JOIN:
    case DEVICE_JOIN_BACKWARD:
        return same_join(a, b);
    case DEVICE_UNFOLD:
    case DEVICE_UNFOLD_BACKWARD:
        return SAME(unfold, length) && SAME(unfold, size);
    case DEVICE_SHORT_CONV:
    case DEVICE_SHORT_CONV_BACKWARD:
    case DEVICE_SHORT_CONV_CACHED:
        return SAME(short_conv, length) && SAME(short_conv, sequences);
    case DEVICE_DELTA:
    case DEVICE_DELTA_BACKWARD:
    case DEVICE_DELTA_CACHED:
        return same_delta(a, b);
    case DEVICE_ATTENTION:
    case DEVICE_ATTENTION_BACKWARD:
    case DEVICE_ATTENTION_CACHED:
        return same_attention(a, b);
    case DEVICE_HEAD_STATISTICS:
    case DEVICE_HEAD_LOSS:
    case DEVICE_HEAD_LOSS_BACKWARD:
    case DEVICE_HEAD_REGRESSION:
    case DEVICE_HEAD_REGRESSION_BACKWARD:
    case DEVICE_HEAD_MULTILABEL:
    case DEVICE_HEAD_MULTILABEL_BACKWARD:
    case DEVICE_HEAD_LOGITS:
    case DEVICE_HEAD_PREFERENCE:
    case DEVICE_HEAD_PREFERENCE_BACKWARD:
    case DEVICE_HEAD_DISTIL_BACKWARD:
    case DEVICE_OWN_LOSS:
    case DEVICE_OWN_LOSS_BACKWARD:
        return same_head(a, b);
    case DEVICE_LINEAR:
    case DEVICE_LINEAR_BACKWARD:
        return same_linear(a, b);
    case DEVICE_MAGNITUDE:
    case DEVICE_MAGNITUDE_BACKWARD:
        return same_magnitude(a, b);
    case DEVICE_POWER_BASE:
    case DEVICE_POWER_BUILD:
    case DEVICE_POWER_KEEP:
        return same_power(a, b);
    case DEVICE_GELU:
    case DEVICE_GELU_BACKWARD:
    case DEVICE_GELU_GATE:
    case DEVICE_GELU_GATE_BACKWARD:
        return SAME(gelu, exact);
    case DEVICE_RELU:
    case DEVICE_RELU_BACKWARD:
        return SAME(relu, squared);
    case DEVICE_SWISH:
    case DEVICE_SWISH_BACKWARD:
        return SAME(swish, slope);
    case DEVICE_CLIP:
    case DEVICE_CLIP_BACKWARD:
        return SAME(clip, limit);
    case DEVICE_XIELU:
    case DEVICE_XIELU_BACKWARD:
        return SAME(xielu, beta) && SAME(xielu, epsilon);
    case DEVICE_SCALE:
    case DEVICE_SCALE_BACKWARD:
        return SAME(scale, factor) && SAME(scale, round_factor);
    case DEVICE_DROPOUT:
    case DEVICE_DROPOUT_BACKWARD:
        return SAME(dropout, probability) && SAME(dropout, whole) && SAME(dropout, first);
    case DEVICE_ENCODE_BLOCKS4:
        return SAME(block, slices) && SAME(block, near);
    case DEVICE_SCALE_BY:
    case DEVICE_SCALE_BY_BACKWARD:
    case DEVICE_TANH:
    case DEVICE_TANH_BACKWARD:
    case DEVICE_SILU_GATE:
    case DEVICE_SILU_GATE_BACKWARD:
    case DEVICE_SIGMOID_GATE:
    case DEVICE_SIGMOID_GATE_BACKWARD:
    case DEVICE_ADD:
    case DEVICE_MULTIPLY:
    case DEVICE_MULTIPLY_BACKWARD:
    case DEVICE_ROWS:
    case DEVICE_ROWS_BACKWARD:
    case DEVICE_DEQUANTISE:
    case DEVICE_ENCODE_BLOCKS8:
    case DEVICE_DECODE_BLOCKS8:
    case DEVICE_SUM_BLOCKS4:
    case DEVICE_POWER_ADD:
    case DEVICE_POWER_LEFT:
    case DEVICE_POWER_RIGHT:
    case DEVICE_ADD_INTO:
    case DEVICE_ACCUMULATE:
    case DEVICE_CLEAR:
    case DEVICE_EXACT_SQUARES:
    case DEVICE_CONVERT:
    case DEVICE_FINISH_SUM:
    case DEVICE_FINISH_INTO:
    case DEVICE_NORM_FOLD:
    case DEVICE_KERNELS:
        break; /* have none */
    }
    return true;
}

bool device_same_attributes(const device_call *a, const device_call *b) {
    const device_attributes *x = &a->attributes, *y = &b->attributes;
    base_assert(a->kernel == b->kernel);
    return x->op == y->op && x->micro_batch == y->micro_batch && x->element == y->element &&
           same_of_kernel(a->kernel, x, y);
}

static bool same_sums(const device_call *a, const device_call *b) {
    for (int i = 0; i < DEVICE_INPUTS; i++)
        if (a->accumulate[i] != b->accumulate[i]) return false;
    return a->accumulate_dw == b->accumulate_dw;
}

bool device_same_call(const device_call *a, const device_call *b) {
    return a->kernel == b->kernel && device_same_attributes(a, b) &&
           same_matrices(a->x, b->x, DEVICE_INPUTS) && same_matrices(a->w, b->w, DEVICE_WEIGHTS) &&
           device_same_matrix(&a->y, &b->y) && same_matrices(a->saved, b->saved, DEVICE_SAVED) &&
           device_same_matrix(&a->dy, &b->dy) && same_matrices(a->dx, b->dx, DEVICE_INPUTS) &&
           same_matrices(a->dw, b->dw, DEVICE_WEIGHTS) && same_sums(a, b);
}
