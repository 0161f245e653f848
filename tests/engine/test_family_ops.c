/* A model of the ops that some families need, as a step runs them: gradients of all weights against
 * differences of the evaluated loss, the same bits however the step is cut, logits of inference
 * against that loss. Sizes are odd on purpose, and values far enough from zero that a wrong cap,
 * scale or head would show. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "infer/inference.h"

enum { WORDS = 61, WIDTH = 30, HEADS = 3, KV_HEADS = 1, HEAD_DIM = 10, INNER = 22, TURNING = 6 };

#define OK(call)                                                                                   \
    do {                                                                                           \
        sifr_error error = {0};                                                                    \
        if ((call) != SIFR_OK) fail_msg("%s", error.message);                                      \
    } while (0)

static sifr_weight matrix(sifr_model *m, const char *unit, const char *name, int64_t rows,
                          int64_t columns) {
    char full[64];
    snprintf(full, sizeof full, "%s.%s", unit, name);
    return sifr_weight_matrix(m, full, rows, columns, SIFR_INIT_NORMAL, 0.3);
}

static sifr_weight vector(sifr_model *m, const char *unit, const char *name, int64_t columns,
                          sifr_init init) {
    char full[64];
    snprintf(full, sizeof full, "%s.%s", unit, name);
    return sifr_weight_vector(m, full, columns, init);
}

static sifr_value heads_norm(sifr_model *m, const char *unit, const char *name, sifr_value x,
                             int64_t heads) {
    sifr_weight scale = vector(m, unit, name, HEAD_DIM, SIFR_INIT_ZERO);
    return sifr_rms_norm(
        m, (sifr_norm_args){
               .x = x, .scale = scale, .epsilon = 1e-6, .plus_one = true, .heads = heads});
}

static sifr_value turn(sifr_model *m, sifr_value x, bool interleaved) {
    static const double frequencies[TURNING / 2] = {1, 0.3, 0.01};
    return sifr_rope(m, (sifr_rope_args){.x = x,
                                         .head_dim = HEAD_DIM,
                                         .rotary_dim = TURNING,
                                         .interleaved = interleaved,
                                         .frequencies = frequencies,
                                         .scale = 1.3});
}

/* q, k and v, gate and up are slices of one product each, as in Phi-3. */
static sifr_value block(sifr_model *m, const char *unit, sifr_value x, bool interleaved) {
    int64_t kv = KV_HEADS * HEAD_DIM, q_columns = HEADS * HEAD_DIM;
    sifr_unit(m, unit);
    sifr_weight scale = vector(m, unit, "norm", WIDTH, SIFR_INIT_ZERO);
    sifr_value n = sifr_rms_norm(
        m, (sifr_norm_args){.x = x, .scale = scale, .epsilon = 1e-6, .plus_one = true});
    sifr_value qkv =
        sifr_linear(m, n, matrix(m, unit, "qkv", q_columns + 2 * kv, WIDTH), SIFR_NO_WEIGHT);
    sifr_value q = heads_norm(m, unit, "q_norm", sifr_slice(m, qkv, 0, q_columns), HEADS);
    sifr_value k = heads_norm(m, unit, "k_norm", sifr_slice(m, qkv, q_columns, kv), KV_HEADS);
    sifr_value a =
        sifr_attention(m, (sifr_attention_args){.q = turn(m, q, interleaved),
                                                .k = turn(m, k, interleaved),
                                                .v = sifr_slice(m, qkv, q_columns + kv, kv),
                                                .heads = HEADS,
                                                .kv_heads = KV_HEADS});
    a = sifr_linear(m, a, matrix(m, unit, "o", WIDTH, q_columns), SIFR_NO_WEIGHT);
    x = sifr_add(m, x, sifr_scale(m, (sifr_scale_args){.x = a, .factor = 0.7}));
    sifr_value both =
        sifr_linear(m, x, matrix(m, unit, "gate_up", 2 * INNER, WIDTH), SIFR_NO_WEIGHT);
    sifr_value gate = sifr_gelu_gate(m, sifr_slice(m, both, 0, INNER),
                                     sifr_slice(m, both, INNER, INNER), interleaved);
    gate = sifr_linear(m, gate, matrix(m, unit, "down", WIDTH, INNER), SIFR_NO_WEIGHT);
    gate = sifr_rms_norm(m, (sifr_norm_args){.x = gate, /* as in OLMo 2: of the result */
                                             .scale = vector(m, unit, "post", WIDTH, SIFR_INIT_ONE),
                                             .epsilon = 1e-6});
    gate = sifr_split_qkv(m, gate, 2, WIDTH / 2); /* as in GPT-NeoX: other places */
    both = sifr_linear(m, x, matrix(m, unit, "other_gate_up", 2 * INNER, WIDTH), SIFR_NO_WEIGHT);
    sifr_value other =
        sifr_silu_gate(m, sifr_slice(m, both, 0, INNER), sifr_slice(m, both, INNER, INNER));
    other = sifr_linear(m, other, matrix(m, unit, "other_down", WIDTH, INNER), SIFR_NO_WEIGHT);
    return sifr_add(m, sifr_add(m, x, gate), other);
}

/* As in DeBERTa: a convolution over tokens. */
static sifr_value convolution(sifr_model *m, sifr_value x) {
    sifr_unit(m, "near");
    sifr_value y = sifr_linear(m, sifr_unfold(m, (sifr_unfold_args){.x = x, .size = 3}),
                               matrix(m, "near", "weight", WIDTH, 3 * WIDTH),
                               vector(m, "near", "bias", WIDTH, SIFR_INIT_ZERO));
    return sifr_add(m, x, sifr_clip(m, sifr_tanh(m, sifr_swish(m, y, 1.702)), 0.25));
}

/* The head is the table itself where `tied`. With `near` it does not generate. */
static sifr_model *make_model(bool tied, bool near) {
    sifr_model *m;
    OK(sifr_model_create(&m, &error));
    sifr_unit(m, "embed");
    sifr_weight table = matrix(m, "embed", "table", WORDS, WIDTH), head = table;
    sifr_value x = sifr_embedding(m, (sifr_embedding_args){.ids = sifr_tokens(m), .table = table});
    x = sifr_scale(m, (sifr_scale_args){.x = x, .factor = sqrt(WIDTH), .round_factor = true});
    x = block(m, "blocks.0", x, false);
    x = block(m, "blocks.1", x, true);
    if (near) x = convolution(m, x);
    sifr_unit(m, "head");
    sifr_weight scale = vector(m, "head", "norm", WIDTH, SIFR_INIT_ONE);
    if (!tied) head = matrix(m, "head", "weight", WORDS, WIDTH);
    x = sifr_layer_norm(m, (sifr_norm_args){.x = x, .scale = scale, .epsilon = 1e-5});
    sifr_head_loss(m, (sifr_head_args){.x = x,
                                       .weight = head,
                                       .bias = vector(m, "head", "bias", WORDS, SIFR_INIT_ZERO),
                                       .scale = 1.7,
                                       .softcap = 3});
    OK(sifr_model_finish(m, &error));
    return m;
}

/* Of any weight; vectors, which begin as they are left alone, are not. */
static float initial(const model_weight *w, size_t index, size_t element) {
    base_random4 r = base_philox(index + 1, element, 0);
    double value = 2 * base_uniform(r.v[0]) - 1;
    return (float)(w->vector ? 0.4 * value + (w->init == SIFR_INIT_ONE)
                             : 2 * value / sqrt((double)w->columns));
}

static sifr_engine *open_engine(const sifr_model *m, const sifr_settings *settings) {
    sifr_engine *engine;
    OK(sifr_engine_create(m, settings, &engine, &error));
    for (size_t w = 0; w < m->weight_count; w++) {
        size_t count = (size_t)(m->weights[w].rows * m->weights[w].columns);
        float *values = malloc(count * sizeof *values);
        assert_non_null(values);
        for (size_t i = 0; i < count; i++) values[i] = initial(&m->weights[w], w, i);
        OK(sifr_engine_write_weight(engine, m->weights[w].name, values, count, &error));
        free(values);
    }
    return engine;
}

static void make_batch(int64_t count, int32_t *tokens, int32_t *labels) {
    for (int64_t i = 0; i < count; i++) {
        base_random4 r = base_philox(99, (uint64_t)i, 0);
        tokens[i] = (int32_t)(r.v[0] % WORDS);
        labels[i] = r.v[2] % 5 == 0 ? -100 : (int32_t)(r.v[1] % WORDS);
    }
}

static sifr_settings settings_of(int64_t sequences, int64_t length) {
    sifr_settings settings = sifr_settings_defaults();
    settings.micro_batch_size = sequences;
    settings.seq_length = length;
    settings.gradient_clipping = 0;
    settings.fp16.loss_scale = 64;
    return settings;
}

/* What the optimizer's instruction of the weight's unit read. */
static const float *gradient_of(const sifr_engine *engine, size_t index) {
    const plan_schedule *s = engine->training;
    const model_weight *w = &engine->model->weights[index];
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->action != PLAN_UPDATE || in->unit != w->unit) continue;
        const plan_operand *operand = &s->operands[in->first_operand];
        const char *base = engine_buffer(engine->trainer, operand->buffer);
        return (const float *)(const void *)(base + operand->offset) + w->offset;
    }
    fail_msg("no update of unit %d", w->unit);
    return NULL;
}

enum { SEQUENCES = 3, LENGTH = 7, TOKENS = SEQUENCES * LENGTH };

/* The mean loss with a weight moved along a direction. */
static double loss_at(sifr_engine *engine, const model_weight *w, size_t index,
                      const float *direction, double step) {
    size_t count = (size_t)(w->rows * w->columns);
    float *values = malloc(count * sizeof *values);
    int32_t tokens[TOKENS], labels[TOKENS];
    double sum;
    int64_t labelled;
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)((double)initial(w, index, i) + step * (double)direction[i]);
    OK(sifr_engine_write_weight(engine, w->name, values, count, &error));
    make_batch(TOKENS, tokens, labels);
    OK(sifr_engine_evaluate(engine, &(sifr_batch){.tokens = tokens, .labels = labels}, &sum,
                            &labelled, &error));
    free(values);
    return sum / (double)labelled;
}

/* Along its own direction a gradient's slope is its length, and no other's is as long. */
static void check_gradient(sifr_engine *engine, size_t index, float *direction) {
    const model_weight *w = &engine->model->weights[index];
    size_t count = (size_t)(w->rows * w->columns);
    double square = 0;
    for (size_t i = 0; i < count; i++) square += (double)direction[i] * (double)direction[i];
    double length = sqrt(square), step = 0.001;
    assert_true(length > 1e-3);
    for (size_t i = 0; i < count; i++) direction[i] /= (float)length;
    double slope =
        (loss_at(engine, w, index, direction, step) - loss_at(engine, w, index, direction, -step)) /
        (2 * step);
    loss_at(engine, w, index, direction, 0);
    if (!(fabs(slope - length) <= 0.01 * length))
        fail_msg("%s: the loss changes by %.7g, its gradient is %.7g long", w->name, slope, length);
}

static void gradients(void **state) {
    (void)state;
    for (int tied = 0; tied < 2; tied++) {
        sifr_model *m = make_model(tied, true);
        sifr_settings settings = settings_of(SEQUENCES, LENGTH);
        sifr_engine *engine = open_engine(m, &settings);
        int32_t tokens[TOKENS], labels[TOKENS];
        sifr_step_result result;
        make_batch(TOKENS, tokens, labels);
        OK(sifr_engine_step(engine, &(sifr_batch){.tokens = tokens, .labels = labels}, 0.0, &result,
                            &error));
        assert_true(result.updated);
        float *copies[64];
        assert_true(m->weight_count <= 64);
        for (size_t w = 0; w < m->weight_count; w++) { /* evaluation runs where they lie */
            size_t bytes = (size_t)(m->weights[w].rows * m->weights[w].columns) * sizeof(float);
            copies[w] = malloc(bytes);
            assert_non_null(copies[w]);
            memcpy(copies[w], gradient_of(engine, w), bytes);
        }
        for (size_t w = 0; w < m->weight_count; w++) {
            check_gradient(engine, w, copies[w]);
            free(copies[w]);
        }
        sifr_engine_free(engine);
        sifr_model_free(m);
    }
}

/* All weights after two steps. */
static float *trained(const sifr_model *m, const sifr_settings *settings, size_t *count) {
    sifr_engine *engine = open_engine(m, settings);
    int64_t tokens_of =
        settings->gradient_accumulation_steps * settings->micro_batch_size * settings->seq_length;
    int32_t *tokens = malloc((size_t)tokens_of * sizeof *tokens),
            *labels = malloc((size_t)tokens_of * sizeof *labels);
    float *all = malloc((size_t)sifr_model_parameters(m) * sizeof *all);
    assert_true(tokens);
    assert_true(labels);
    assert_true(all);
    make_batch(tokens_of, tokens, labels);
    sifr_step_result result;
    for (int s = 0; s < 2; s++) {
        OK(sifr_engine_step(engine, &(sifr_batch){.tokens = tokens, .labels = labels}, 1e-3,
                            &result, &error));
        assert_true(result.updated);
    }
    *count = 0;
    for (size_t w = 0; w < m->weight_count; w++) {
        size_t elements = (size_t)(m->weights[w].rows * m->weights[w].columns);
        OK(sifr_engine_read_weight(engine, m->weights[w].name, all + *count, elements, &error));
        *count += elements;
    }
    free(tokens);
    free(labels);
    sifr_engine_free(engine);
    return all;
}

static void expect_bits(const sifr_model *m, const sifr_settings *settings, const float *want,
                        const char *what) {
    size_t count;
    float *have = trained(m, settings, &count);
    if (memcmp(have, want, count * sizeof *want) != 0)
        fail_msg("%s, precision %d: other bits", what, settings->precision);
    free(have);
}

static void same_bits(void **state) {
    (void)state;
    static const sifr_precision precisions[] = {SIFR_FP32, SIFR_BF16, SIFR_FP16};
    for (int p = 0; p < 3; p++) {
        sifr_model *m = make_model(p % 2, true);
        sifr_settings settings = settings_of(17, 67); /* a last tile of 115 */
        size_t count;
        settings.precision = precisions[p];
        settings.gradient_accumulation_steps = 2;
        settings.threads = 1;
        float *want = trained(m, &settings, &count);
        settings.threads = 3;
        expect_bits(m, &settings, want, "3 threads");
        settings.recompute = SIFR_RECOMPUTE_UNIT;
        expect_bits(m, &settings, want, "recomputed");
        settings.tile_tokens = 1024;
        expect_bits(m, &settings, want, "recomputed, in tiles");
        settings.recompute = SIFR_RECOMPUTE_NONE;
        settings.step_order = SIFR_STEP_UNIT;
        expect_bits(m, &settings, want, "in tiles, unit by unit");
        free(want);
        sifr_model_free(m);
    }
}

static void fill(const void *user, size_t weight, int64_t first, int64_t count, float *out) {
    const sifr_model *m = user;
    for (int64_t i = 0; i < count; i++)
        out[i] = initial(&m->weights[weight], weight, (size_t)(first + i));
}

static double cross_entropy(const float *logits, int32_t label) {
    double sum = 0;
    for (int w = 0; w < WORDS; w++) sum += exp((double)logits[w]);
    return log(sum) - (double)logits[label];
}

/* Logits of inference have the loss that evaluation has; those of generation are the same. */
static void logits(void **state) {
    (void)state;
    sifr_model *m = make_model(false, false);
    int32_t tokens[TOKENS], labels[TOKENS];
    float all[TOKENS * WORDS], last[WORDS];
    sifr_batch batch = {.tokens = tokens, .labels = labels};
    make_batch(TOKENS, tokens, labels);
    infer_options options = {
        .mode = PLAN_EVALUATE, .sequences = SEQUENCES, .length = LENGTH, .precision = SIFR_FP32};
    infer_inference *inference;
    double sum, expected = 0;
    int64_t labelled;
    OK(infer_create(m, &options, &inference, &error));
    OK(infer_fill(inference, fill, m, &error));
    OK(infer_loss(inference, &batch, &sum, &labelled, NULL, &error));
    infer_free(inference);
    options.mode = PLAN_LOGITS;
    OK(infer_create(m, &options, &inference, &error));
    OK(infer_fill(inference, fill, m, &error));
    OK(infer_logits(inference, &batch, all, &error));
    infer_free(inference);
    for (int i = 0; i < TOKENS; i++)
        if (labels[i] >= 0) expected += cross_entropy(all + i * WORDS, labels[i]);
    if (!(fabs(sum - expected) < 1e-5 * expected))
        fail_msg("the loss is %.9g, of the logits %.9g", sum, expected);
    options = (infer_options){.mode = PLAN_GENERATE,
                              .sequences = 1,
                              .length = 4,
                              .cache_length = LENGTH,
                              .precision = SIFR_FP32};
    OK(infer_create(m, &options, &inference, &error));
    OK(infer_fill(inference, fill, m, &error));
    OK(infer_append(inference, 0, tokens, LENGTH, 0, last, &error));
    infer_free(inference);
    for (int w = 0; w < WORDS; w++) {
        double want = (double)all[(LENGTH - 1) * WORDS + w];
        if (!(fabs((double)last[w] - want) < 1e-5))
            fail_msg("generation: logit %d is %.9g, expected %.9g", w, (double)last[w], want);
    }
    sifr_model_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(logits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
