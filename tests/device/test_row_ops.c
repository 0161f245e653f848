/* Kernels that work on rows (tables, norms, rotations, neighbours), against double precision: see
 * support/op_case.h.
 * in test_asan */
#include "support/op_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"

/* Embedding: a table of c->words rows, and as many before them as c->variant says. */

static void embedding_shape(const op_case *c, base_dtype type, device_call *call) {
    call->attributes.embedding.first = c->variant;
    call->x[0] = op_sized(c->rows, 1, BASE_INT32);
    call->w[0] = op_sized(c->variant + c->words, c->columns, type);
    call->y = op_sized(c->rows, c->columns, type);
}

static void embedding_reference(const device_call *call, const op_values *v) {
    int64_t n = call->y.columns, first = call->attributes.embedding.first;
    for (int64_t r = 0; r < call->y.rows; r++)
        memcpy(v->y + r * n, v->w[0] + (first + (int64_t)v->x[0][r]) * n, (size_t)n * sizeof *v->y);
}

/* All rows of a table. */

static void rows_shape(const op_case *c, base_dtype type, device_call *call) {
    call->w[0] = call->y = op_sized(c->rows, c->columns, type);
}

static void rows_reference(const device_call *call, const op_values *v) {
    memcpy(v->y, v->w[0], (size_t)(call->y.rows * call->y.columns) * sizeof *v->y);
}

/* Norms; variant: NO_BIAS (a layer norm has one otherwise), PLUS_ONE, PLAIN (no weights), OWN (of
 * each group), GROUPS x their number. */

enum { NO_BIAS = 1, PLUS_ONE = 2, PLAIN = 4, OWN = 8, GROUPS = 16 };

static int64_t groups_of(const device_call *call) {
    return base_max_i64(1, call->attributes.norm.groups);
}

static void layer_norm_shape(const op_case *c, base_dtype type, device_call *call) {
    call->attributes.norm.epsilon = 1e-5f;
    call->attributes.norm.plus_one = c->variant & PLUS_ONE;
    call->attributes.norm.groups = c->variant / GROUPS;
    int64_t groups = groups_of(call), columns = c->columns / groups;
    call->x[0] = op_sized(c->rows, c->columns, type);
    bool plain = c->variant & PLAIN;
    int64_t weights = c->variant & OWN ? groups : 1;
    call->w[0] = op_sized(weights, columns, plain ? BASE_NONE : type);
    call->w[1] = op_sized(weights, columns, plain || c->variant & NO_BIAS ? BASE_NONE : type);
    call->y = op_sized(c->rows, c->columns, type);
    call->saved[0] = op_sized(c->rows, 2 * groups, BASE_FP32);
}

/* Of element i of unit u: a row, or a group of one. */
static int64_t norm_weight(const device_call *call, int64_t u, int64_t i) {
    bool own = call->w[0].rows > 1;
    return own ? u % groups_of(call) * device_norm_columns(call) + i : i;
}

static double norm_scale(const device_call *call, const op_values *v, int64_t i) {
    if (!v->w[0]) return 1;
    return call->attributes.norm.plus_one ? 1 + v->w[0][i] : v->w[0][i];
}

static void layer_norm_reference(const device_call *call, const op_values *v) {
    int64_t n = device_norm_columns(call);
    for (int64_t r = 0; r < call->x[0].rows * groups_of(call); r++) {
        const double *x = v->x[0] + r * n;
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < n; i++) mean += x[i] / (double)n;
        for (int64_t i = 0; i < n; i++) variance += (x[i] - mean) * (x[i] - mean) / (double)n;
        double scale = 1 / sqrt(variance + (double)call->attributes.norm.epsilon);
        for (int64_t i = 0; i < n; i++)
            v->y[r * n + i] = (x[i] - mean) * scale * norm_scale(call, v, norm_weight(call, r, i)) +
                              (v->w[1] ? v->w[1][norm_weight(call, r, i)] : 0.0);
        v->saved[0][2 * r] = mean;
        v->saved[0][2 * r + 1] = scale;
    }
}

static void rms_norm_shape(const op_case *c, base_dtype type, device_call *call) {
    layer_norm_shape(c, type, call);
    call->w[1] = (device_matrix){0};
    call->saved[0].columns /= 2;
}

static void rms_norm_reference(const device_call *call, const op_values *v) {
    int64_t n = device_norm_columns(call);
    for (int64_t r = 0; r < call->x[0].rows * groups_of(call); r++) {
        const double *x = v->x[0] + r * n;
        double square = 0;
        for (int64_t i = 0; i < n; i++) square += x[i] * x[i] / (double)n;
        double scale = 1 / sqrt(square + (double)call->attributes.norm.epsilon);
        for (int64_t i = 0; i < n; i++)
            v->y[r * n + i] = x[i] * scale * norm_scale(call, v, norm_weight(call, r, i));
        v->saved[0][r] = scale;
    }
}

/* Rotary embedding; variant: heads, NEIGHBOURS, STAYING x the elements of a head that stay. The
 * table holds any numbers, not only cosines. */

enum { HEADS = 64, NEIGHBOURS = 64, STAYING = 128 };

static void rope_shape(const op_case *c, base_dtype type, device_call *call) {
    int32_t heads = c->variant % HEADS, dim = (int32_t)(c->columns / heads);
    int32_t staying = c->variant / STAYING;
    call->attributes.rope.heads = heads;
    call->attributes.rope.head_dim = dim;
    call->attributes.rope.rotary_dim = staying ? dim - staying : 0;
    call->attributes.rope.interleaved = c->variant & NEIGHBOURS;
    call->x[0] = op_sized(c->rows, c->columns, type);
    call->x[1] = op_sized(c->rows, 1, BASE_INT32);
    call->x[2] = op_sized(c->words, dim - staying, BASE_FP32);
    call->y = op_sized(c->rows, c->columns, type);
}

static void rope_reference(const device_call *call, const op_values *v) {
    int64_t dim = call->attributes.rope.head_dim, n = call->y.columns;
    int64_t turning = call->x[2].columns, half = turning / 2;
    bool neighbours = call->attributes.rope.interleaved;
    for (int64_t r = 0; r < call->y.rows; r++) {
        const double *table = v->x[2] + (int64_t)v->x[1][r] * turning;
        for (int64_t i = 0; i < n; i++) {
            int64_t at = i % dim, base = r * n + i;
            int64_t pair = neighbours ? at / 2 : at % half, apart = neighbours ? 1 : half;
            bool first = neighbours ? at % 2 == 0 : at < half;
            double turned = 0, cosine = 1, sine = 0;
            if (at < turning) {
                turned = first ? -v->x[0][base + apart] : v->x[0][base - apart];
                cosine = table[pair], sine = table[half + pair];
            }
            v->y[base] = v->x[0][base] * cosine + turned * sine;
        }
    }
}

/* Columns in another order; variant: parts; words: groups. */

static void split_qkv_shape(const op_case *c, base_dtype type, device_call *call) {
    call->attributes.split_qkv.parts = c->variant;
    call->attributes.split_qkv.groups = (int32_t)c->words;
    call->x[0] = call->y = op_sized(c->rows, c->columns, type);
}

static void split_qkv_reference(const device_call *call, const op_values *v) {
    int64_t groups = call->attributes.split_qkv.groups, parts = call->attributes.split_qkv.parts;
    int64_t columns = call->y.columns, n = columns / groups / parts;
    for (int64_t r = 0; r < call->y.rows; r++) {
        for (int64_t g = 0; g < groups; g++) {
            for (int64_t k = 0; k < parts * n; k++) {
                int64_t p = k / n, to = (p * groups + g) * n + k % n;
                v->y[r * columns + to] = v->x[0][r * columns + g * parts * n + k];
            }
        }
    }
}

#define REGROUP(r, n, of, g)                                                                       \
    {                                                                                              \
        .name = "split_qkv", .forward = DEVICE_SPLIT_QKV, .backward = DEVICE_SPLIT_QKV_BACKWARD,   \
        .shape = split_qkv_shape, .reference = split_qkv_reference, .wants = OP_X0, .rows = r,     \
        .columns = n, .variant = of, .words = g                                                    \
    }

/* --- values beside each other; variant: their number, each one column wider --- */

static void join_shape(const op_case *c, base_dtype type, device_call *call) {
    int64_t end = 0;
    for (int i = 0; i < c->variant; i++) {
        call->x[i] = op_sized(c->rows, c->columns + i, type);
        call->attributes.join.end[i] = end += c->columns + i;
    }
    call->y = op_sized(c->rows, end, type);
}

static void join_reference(const device_call *call, const op_values *v) {
    int64_t at = 0;
    for (int64_t r = 0; r < call->y.rows; r++) {
        for (int i = 0; i < DEVICE_INPUTS && call->x[i].dtype != BASE_NONE; i++) {
            int64_t n = call->x[i].columns;
            for (int64_t k = 0; k < n; k++) v->y[at++] = v->x[i][r * n + k];
        }
    }
}

#define JOIN(r, n, of, wanted)                                                                     \
    {                                                                                              \
        .name = "join", .forward = DEVICE_JOIN, .backward = DEVICE_JOIN_BACKWARD,                  \
        .shape = join_shape, .reference = join_reference, .wants = wanted, .rows = r,              \
        .columns = n, .variant = of                                                                \
    }

/* Neighbours; variant: their number; words: rows of a sequence. */

static void unfold_shape(const op_case *c, base_dtype type, device_call *call) {
    call->attributes.unfold.size = c->variant;
    call->attributes.unfold.length = c->words;
    call->x[0] = op_sized(c->rows, c->columns, type);
    call->y = op_sized(c->rows, c->columns * c->variant, type);
}

/* Sequences of all rows, whose tokens are of c->words segments. */
static void near_segments_shape(const op_case *c, base_dtype type, device_call *call) {
    unfold_shape(c, type, call);
    call->attributes.unfold.length = c->rows;
    call->x[1] = op_sized(c->rows, 1, BASE_INT32);
}

static void unfold_reference(const device_call *call, const op_values *v) {
    int64_t size = call->attributes.unfold.size, length = call->attributes.unfold.length;
    int64_t n = call->x[0].columns;
    for (int64_t r = 0; r < call->y.rows; r++) {
        for (int64_t i = 0; i < n * size; i++) {
            int64_t at = r % length + i % size - size / 2, from = r + i % size - size / 2;
            bool there = at >= 0 && at < length;
            if (there && v->x[1]) there = v->x[1][r] == v->x[1][from];
            v->y[r * n * size + i] = there ? v->x[0][from * n + i / size] : 0;
        }
    }
}

#define LAYER_NORM                                                                                 \
    .name = "layer norm", .forward = DEVICE_LAYER_NORM, .backward = DEVICE_LAYER_NORM_BACKWARD,    \
    .shape = layer_norm_shape, .reference = layer_norm_reference, .error_fp32 = 24,                \
    .reads = OP_X0 | OP_W0 | OP_SAVED0
#define RMS_NORM                                                                                   \
    .name = "rms norm", .forward = DEVICE_RMS_NORM, .backward = DEVICE_RMS_NORM_BACKWARD,          \
    .shape = rms_norm_shape, .reference = rms_norm_reference, .error_fp32 = 24,                    \
    .reads = OP_X0 | OP_W0 | OP_SAVED0, .wants = OP_X0 | OP_W0

static const op_case tables[] = {
#define TABLE(r, n, w, first)                                                                      \
    {                                                                                              \
        .name = "embedding", .forward = DEVICE_EMBEDDING, .backward = DEVICE_EMBEDDING_BACKWARD,   \
        .shape = embedding_shape, .reference = embedding_reference, .reads = OP_X0,                \
        .wants = OP_W0, .rows = r, .columns = n, .words = w, .length = r, .variant = first         \
    }
    TABLE(1, 1, 1, 0),
    TABLE(9, 5, 4, 0),
    TABLE(70, 67, 13, 0),
    TABLE(33, 600, 5, 0),
    TABLE(300, 130, 2, 0),
    TABLE(33, 67, 5, 2),
#define ROWS_OF(r, n)                                                                              \
    {                                                                                              \
        .name = "rows", .forward = DEVICE_ROWS, .backward = DEVICE_ROWS_BACKWARD,                  \
        .shape = rows_shape, .reference = rows_reference, .wants = OP_W0, .rows = r, .columns = n, \
        .length = 1                                                                                \
    }
    ROWS_OF(1, 1),
    ROWS_OF(33, 17),
    ROWS_OF(70, 600),
#define ROPE(r, n, h)                                                                              \
    {                                                                                              \
        .name = "rope", .forward = DEVICE_ROPE, .backward = DEVICE_ROPE_BACKWARD,                  \
        .shape = rope_shape, .reference = rope_reference, .reads = OP_X1 | OP_X2, .wants = OP_X0,  \
        .in_place = true, .rows = r, .columns = n, .variant = h, .words = 50, .length = 2          \
    }
#define NEAR(r, n, of, l)                                                                          \
    {                                                                                              \
        .name = "unfold", .forward = DEVICE_UNFOLD, .backward = DEVICE_UNFOLD_BACKWARD,            \
        .shape = unfold_shape, .reference = unfold_reference, .wants = OP_X0, .rows = r,           \
        .columns = n, .variant = of, .words = l, .length = of                                      \
    }
    REGROUP(1, 1, 1, 1),
    REGROUP(5, 36, 3, 4),
    REGROUP(67, 3090, 2, 3),
    JOIN(1, 1, 2, OP_X0 | OP_X1),
    JOIN(33, 17, 3, OP_X0 | OP_X1 | OP_X2),
    JOIN(7, 530, 2, OP_X1),
    JOIN(40, 6, 4, OP_X0 | OP_X1 | OP_X2 | OP_X3),
    NEAR(1, 1, 3, 1),
    NEAR(7, 5, 1, 7),
    NEAR(33, 17, 3, 11),
    NEAR(66, 600, 3, 33),
    NEAR(12, 40, 31, 4),
#define NEAR_SEGMENTS(r, n, of, s)                                                                 \
    {                                                                                              \
        .name = "unfold of a segment", .forward = DEVICE_UNFOLD,                                   \
        .backward = DEVICE_UNFOLD_BACKWARD, .shape = near_segments_shape,                          \
        .reference = unfold_reference, .reads = OP_X1, .wants = OP_X0, .rows = r, .columns = n,    \
        .variant = of, .words = s, .length = of                                                    \
    }
    NEAR_SEGMENTS(33, 17, 3, 2),
    NEAR_SEGMENTS(66, 600, 5, 3),
    ROPE(1, 2, 1),
    ROPE(5, 12, 2),
    ROPE(40, 66, 3),
    ROPE(65, 128, 2),
    ROPE(3, 2100, 1),
    ROPE(1, 2, 1 + NEIGHBOURS),
    ROPE(40, 66, 3 + NEIGHBOURS),
    ROPE(3, 2100, 1 + NEIGHBOURS),
    ROPE(33, 80, 5 + 4 * STAYING),
    ROPE(7, 57, 3 + 5 * STAYING),
    ROPE(3, 3002, 2 + 1201 * STAYING),
    ROPE(33, 80, 5 + 8 * STAYING + NEIGHBOURS),
    ROPE(7, 57, 3 + 1 * STAYING + NEIGHBOURS),
    ROPE(3, 3002, 2 + 101 * STAYING + NEIGHBOURS),
};

static const op_case norms[] = {
#define NORMS(r, n)                                                                                \
    {LAYER_NORM, .rows = r, .columns = n, .wants = OP_X0 | OP_W0 | OP_W1, .length = (r) + (n)},    \
        {LAYER_NORM,         .rows = r,          .columns = n, .wants = OP_X0 | OP_W0,             \
         .variant = NO_BIAS, .length = (r) + (n)},                                                 \
    {                                                                                              \
        RMS_NORM, .rows = r, .columns = n, .length = (r) + (n)                                     \
    }
    NORMS(1, 2),
    NORMS(3, 17),
    NORMS(31, 33),
    NORMS(5, 768),
    NORMS(2, 1100),
    NORMS(1030, 19),
    NORMS(130, 515),
#define GROUPED(r, h, n)                                                                           \
    {RMS_NORM, .rows = r, .columns = (h) * (n), .variant = (h)*GROUPS, .length = (r) * (h) + (n)}, \
        {RMS_NORM, .rows = r, .columns = (h) * (n), .variant = (h)*GROUPS + PLUS_ONE,              \
         .length = (r) * (h) + (n)},                                                               \
    {                                                                                              \
        LAYER_NORM, .rows = r, .columns = (h) * (n), .wants = OP_X0 | OP_W0 | OP_W1,               \
                    .variant = (h)*GROUPS + PLUS_ONE, .length = (r) * (h) + (n)                    \
    }
    GROUPED(1, 2, 2),
    GROUPED(5, 1, 37),
    GROUPED(31, 3, 17),
    GROUPED(140, 5, 64),
    GROUPED(3, 2, 600),
#define UNWEIGHTED(r, h, n)                                                                        \
    {.name = "rms norm without a weight",                                                          \
     .forward = DEVICE_RMS_NORM,                                                                   \
     .backward = DEVICE_RMS_NORM_BACKWARD,                                                         \
     .shape = rms_norm_shape,                                                                      \
     .reference = rms_norm_reference,                                                              \
     .error_fp32 = 24,                                                                             \
     .reads = OP_X0 | OP_SAVED0,                                                                   \
     .wants = OP_X0,                                                                               \
     .rows = r,                                                                                    \
     .columns = (h) * (n),                                                                         \
     .variant = (h)*GROUPS + PLAIN,                                                                \
     .length = (n)},                                                                               \
    {                                                                                              \
        .name = "layer norm without weights", .forward = DEVICE_LAYER_NORM,                        \
        .backward = DEVICE_LAYER_NORM_BACKWARD, .shape = layer_norm_shape,                         \
        .reference = layer_norm_reference, .error_fp32 = 24, .reads = OP_X0 | OP_SAVED0,           \
        .wants = OP_X0, .rows = r, .columns = (h) * (n), .variant = (h)*GROUPS + PLAIN,            \
        .length = (n)                                                                              \
    }
    {LAYER_NORM, .wants = OP_X0 | OP_W0 | OP_W1, .rows = 7, .columns = 3 * 21,
     .variant = 3 * GROUPS + OWN, .length = 21},
    {LAYER_NORM, .wants = OP_X0 | OP_W0, .rows = 140, .columns = 2 * 5,
     .variant = 2 * GROUPS + OWN + NO_BIAS, .length = 140},
    {RMS_NORM, .rows = 5, .columns = 2 * 600, .variant = 2 * GROUPS + OWN + PLUS_ONE,
     .length = 600},
    UNWEIGHTED(1, 1, 2),
    UNWEIGHTED(31, 3, 17),
    UNWEIGHTED(5, 2, 600),
    /* a mean far from 0: the variance must not be made of differences of large numbers */
    {.name = "layer norm, far from 0",
     .forward = DEVICE_LAYER_NORM,
     .backward = DEVICE_LAYER_NORM,
     .shape = layer_norm_shape,
     .reference = layer_norm_reference,
     .rows = 3,
     .columns = 100,
     .length = 100,
     .low = 99,
     .high = 100,
     .error_fp32 = 1000},
};

#define RUN(table) op_cases_run(table, (int)(sizeof table / sizeof *table))

static void test_tables(void **state) {
    (void)state;
    RUN(tables);
}

static void test_norms(void **state) {
    (void)state;
    RUN(norms);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
