/* A case of attention for kernel tests: its shape and features, its operands, the call, and what
 * a result may be off by. */
#ifndef TESTS_ATTENTION_CASE_H
#define TESTS_ATTENTION_CASE_H

#include "device/matrix_case.h"

#include <math.h>

typedef struct attention_case {
    int64_t sequences, length;
    int heads, kv_heads, head_dim;
    double scale, softcap; /* scale 0: 1/sqrt(head_dim) */
    int64_t window;
    bool bidirectional;
    double alibi; /* a bias by distance, times each head's slope; 0: none */
    int segments; /* 0: none; else one of the patterns of segment_of() */
} attention_case;

#define SHAPE(s, l, h, kv, d)                                                                      \
    .sequences = (s), .length = (l), .heads = (h), .kv_heads = (kv), .head_dim = (d)

enum { PADDED = 1, DOCUMENTS, SCATTERED, ALONE };

/* Text and, behind it, padding; runs of odd lengths with numbers in no order; each token by chance
 * in one of three; no two alike. */
static inline int32_t segment_of(const attention_case *c, int64_t row) {
    int64_t at = row % c->length, sequence = row / c->length;
    switch (c->segments) {
    case PADDED:
        return at >= c->length * (3 + sequence) / 5;
    case DOCUMENTS:
        return (int32_t)((at + 11 * sequence) / 37 * 7919 % 31) - 15;
    case SCATTERED:
        return (int32_t)(base_philox(3, (uint64_t)row, 0).v[0] % 3);
    default:
        return (int32_t)(at ^ 5) - 50;
    }
}

/* q, k and v are slices of columns of one matrix, as GPT-2's are; so are their gradients. */
typedef struct attention_operands {
    const attention_case *c;
    device_matrix qkv, dqkv, y, dy, log_sums, segments;
    float dropout;
} attention_operands;

static device_step step = {.seed = 5, .step = 3, .training = true};

static inline int64_t kv_width(const attention_case *c) {
    return (int64_t)c->kv_heads * c->head_dim;
}

static inline int64_t q_width(const attention_case *c) {
    return (int64_t)c->heads * c->head_dim;
}

static inline device_matrix part(const device_matrix *m, const attention_case *c, int which) {
    device_matrix slice = *m;
    int64_t first = which == 0 ? 0 : q_width(c) + (which - 1) * kv_width(c);
    slice.columns = which == 0 ? q_width(c) : kv_width(c);
    slice.data = (char *)m->data + first * base_dtype_bytes(m->dtype);
    return slice;
}

static inline device_matrix make_segments(const attention_case *c) {
    if (c->segments == 0) return (device_matrix){0};
    device_matrix m = case_matrix(c->sequences * c->length, 2, BASE_INT32, 1, 100);
    m.columns = 1; /* a slice */
    for (int64_t r = 0; r < m.rows; r++) case_set(&m, r, 0, segment_of(c, r));
    return m;
}

static inline attention_operands make_operands(const attention_case *c, base_dtype type,
                                               float dropout) {
    int64_t rows = c->sequences * c->length, width = q_width(c) + 2 * kv_width(c);
    return (attention_operands){.c = c,
                                .qkv = case_matrix(rows, width, type, 1, 1.5),
                                .dqkv = case_matrix(rows, width, type, 2, 1),
                                .y = case_matrix(rows, q_width(c), type, 3, 1),
                                .dy = case_matrix(rows, q_width(c), type, 4, 1),
                                .log_sums = case_matrix(c->heads, rows, BASE_FP32, 5, 1),
                                .segments = make_segments(c),
                                .dropout = dropout};
}

static inline void free_operands(attention_operands *o) {
    free(o->qkv.data);
    free(o->dqkv.data);
    free(o->y.data);
    free(o->dy.data);
    free(o->log_sums.data);
    free(o->segments.data);
}

static inline double scale_of(const attention_case *c) {
    return (float)(c->scale > 0 ? c->scale : 1.0 / sqrt(c->head_dim));
}

static inline device_call describe_call(const attention_operands *o, device_kernel kernel) {
    device_call call = {
        .kernel = kernel,
        .x = {part(&o->qkv, o->c, 0), part(&o->qkv, o->c, 1), part(&o->qkv, o->c, 2), o->segments},
        .y = o->y,
        .saved = {o->log_sums},
        .step = &step};
    if (kernel == DEVICE_ATTENTION_BACKWARD) {
        call.dy = o->dy;
        for (int i = 0; i < 3; i++) call.dx[i] = part(&o->dqkv, o->c, i);
    }
    call.attributes.op = 7, call.attributes.micro_batch = 2;
    call.attributes.attention.heads = o->c->heads;
    call.attributes.attention.kv_heads = o->c->kv_heads;
    call.attributes.attention.head_dim = o->c->head_dim;
    call.attributes.attention.sequences = o->c->sequences;
    call.attributes.attention.length = o->c->length;
    call.attributes.attention.scale = (float)scale_of(o->c);
    call.attributes.attention.softcap = (float)o->c->softcap;
    call.attributes.attention.alibi = (float)o->c->alibi;
    call.attributes.attention.alibi_heads = o->c->heads;
    call.attributes.attention.window = o->c->window;
    call.attributes.attention.bidirectional = o->c->bidirectional;
    call.attributes.attention.dropout = o->dropout;
    return call;
}

/* bf16 stores P and dS with 8 bits, so what they are summed into carries that of all its terms;
 * fp16 only y and the gradients, with 11. */
static inline double tolerance(base_dtype type) {
    return type == BASE_BF16 ? 1.0 / 100 : type == BASE_FP16 ? 1.0 / 1000 : 4e-6;
}

static inline void check_value(const char *what, const attention_case *c, base_dtype type,
                               double got, double want, double terms) {
    double allowed = tolerance(type) * terms + 1e-7; /* products that cancel have no terms */
    if (type == BASE_FP16) allowed += 0x1p-25;       /* below 2^-14 */
    if (!(fabs(got - want) <= allowed))
        fail_msg("%s %s %lldx%lld heads %d/%d of %d, scale %g, softcap %g, window %lld%s, segments "
                 "%d: %.9g, "
                 "expected %.9g within %.2g",
                 what, base_dtype_name(type), (long long)c->sequences, (long long)c->length,
                 c->heads, c->kv_heads, c->head_dim, c->scale, c->softcap, (long long)c->window,
                 c->bidirectional ? ", bidirectional" : "", c->segments, got, want, allowed);
}

#endif
