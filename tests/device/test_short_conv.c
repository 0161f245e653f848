/* Short convolutions over tokens: against double precision and finite differences (see
 * support/op_case.h); a document packed behind others has the bits that it has alone, forward and
 * backward; and so has a sequence that is fed token by token and in pieces, alone or beside others.
 * in test_asan */
#include "support/op_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "device/matrix_case.h"

/* variant: the taps, and PACKED; words: rows of a sequence, or segments. */
enum { PACKED = 16, UNBIASED = 32 };

static void shape(const op_case *c, base_dtype type, device_call *call) {
    bool packed = c->variant & PACKED;
    call->attributes.short_conv.length = packed ? c->rows : c->words;
    call->attributes.short_conv.sequences = packed ? 1 : c->rows / c->words;
    call->x[0] = call->y = op_sized(c->rows, c->columns, type);
    if (packed) call->x[1] = op_sized(c->rows, 1, BASE_INT32);
    call->w[0] = op_sized(c->columns, c->variant % PACKED, type);
    if (!(c->variant & UNBIASED)) call->w[1] = op_sized(1, c->columns, type);
}

static void reference(const device_call *call, const op_values *v) {
    int64_t size = call->w[0].columns, n = call->y.columns;
    int64_t length = call->attributes.short_conv.length;
    for (int64_t r = 0; r < call->y.rows; r++) {
        for (int64_t c = 0; c < n; c++) {
            double sum = v->w[1] ? v->w[1][c] : 0;
            for (int64_t back = 0; back < size && back <= r % length; back++) {
                if (v->x[1] && v->x[1][r] != v->x[1][r - back]) continue;
                sum += v->w[0][c * size + size - 1 - back] * v->x[0][(r - back) * n + c];
            }
            v->y[r * n + c] = sum;
        }
    }
}

#define CONV(r, n, taps, l)                                                                        \
    {                                                                                              \
        .name = "short_conv", .forward = DEVICE_SHORT_CONV,                                        \
        .backward = DEVICE_SHORT_CONV_BACKWARD, .shape = shape, .reference = reference, .rows = r, \
        .columns = n, .variant = taps, .words = l, .length = (r) + 8,                              \
        .reads = OP_X0 | OP_W0 | ((taps)&PACKED ? OP_X1 : 0),                                      \
        .wants = OP_X0 | OP_W0 | ((taps)&UNBIASED ? 0 : OP_W1)                                     \
    }

static const op_case cases[] = {
    CONV(1, 1, 3, 1),
    CONV(7, 5, 2, 7),
    CONV(33, 17, 3, 11),
    CONV(33, 17, 4 + UNBIASED, 11),
    CONV(66, 600, 3 + UNBIASED, 33),
    CONV(150, 70, 4, 75),
    CONV(12, 40, 8, 4),
    CONV(33, 17, 3 + PACKED, 2),
    CONV(66, 130, 4 + PACKED, 3),
    CONV(140, 19, 3 + PACKED + UNBIASED, 1),
};

static void test_cases(void **state) {
    (void)state;
    op_cases_run(cases, (int)(sizeof cases / sizeof *cases));
}

/* --- rows of documents and of generation --- */

enum { COLUMNS = 37, ROWS = 70, TAPS = 4 };

static device_matrix rows_of(const device_matrix *m, int64_t first, int64_t rows) {
    device_matrix part = *m;
    part.data = (char *)m->data + first * m->stride * base_dtype_bytes(m->dtype);
    part.rows = rows;
    return part;
}

/* A whole sequence, of documents of 1, 2, 30 and 37 rows if packed; `back`: its backward call. */
static device_call whole_call(base_dtype type, bool back, bool packed) {
    static const int64_t ends[] = {1, 3, 33, ROWS};
    device_call call = {.kernel = back ? DEVICE_SHORT_CONV_BACKWARD : DEVICE_SHORT_CONV};
    call.attributes.short_conv.length = ROWS;
    call.attributes.short_conv.sequences = 1;
    call.x[0] = case_matrix(ROWS, COLUMNS, type, 1, 1);
    call.w[0] = case_matrix(COLUMNS, TAPS, type, 2, 1);
    call.w[1] = case_matrix(1, COLUMNS, type, 3, 1);
    *(back ? &call.dx[0] : &call.y) = case_matrix(ROWS, COLUMNS, type, 4, 1);
    if (back) call.dy = case_matrix(ROWS, COLUMNS, type, 5, 1);
    if (!packed) return call;
    call.x[1] = case_matrix(ROWS, 1, BASE_INT32, 6, 1);
    for (int64_t r = 0, of = 0; r < ROWS; r++) {
        of += r >= ends[of];
        case_set(&call.x[1], r, 0, (double)of);
    }
    return call;
}

static void free_call(device_call *call) {
    for (int i = 0; i < 2; i++) free(call->x[i].data), free(call->w[i].data);
    free(call->y.data), free(call->dy.data), free(call->dx[0].data);
}

static bool same_rows(const device_matrix *a, const device_matrix *b) {
    return !memcmp(a->data, b->data, (size_t)(a->rows * a->columns * base_dtype_bytes(a->dtype)));
}

static const base_dtype types[] = {BASE_FP32, BASE_BF16, BASE_FP16};

/* Rows first … end - 1 as a sequence of their own. */
static void check_alone(device *dev, const device_call *whole, int64_t first, int64_t end) {
    bool back = whole->kernel == DEVICE_SHORT_CONV_BACKWARD;
    device_call call = *whole;
    device_matrix got = case_matrix(end - first, COLUMNS, whole->x[0].dtype, 9, 0);
    const device_matrix *to = back ? &whole->dx[0] : &whole->y;
    call.attributes.short_conv.length = end - first;
    call.x[0] = rows_of(&whole->x[0], first, end - first);
    call.x[1] = (device_matrix){0};
    *(back ? &call.dx[0] : &call.y) = got;
    if (back) call.dy = rows_of(&whole->dy, first, end - first);
    case_run(dev, &call);
    device_matrix wanted = rows_of(to, first, end - first);
    if (!same_rows(&got, &wanted))
        fail_msg("rows %d to %d alone have other bits%s", (int)first, (int)end,
                 back ? " in dx" : "");
    free(got.data);
}

static void packed(void **state) {
    (void)state;
    for (int isa = 0; isa < CASE_ISAS; isa++) {
        device *dev = case_device(2, case_isas[isa]);
        if (!dev) continue;
        for (int i = 0; i < 6; i++) {
            device_call call = whole_call(types[i / 2], i % 2, true);
            case_run(dev, &call);
            check_alone(dev, &call, 0, 1);
            check_alone(dev, &call, 1, 3);
            check_alone(dev, &call, 3, 33);
            check_alone(dev, &call, 33, ROWS);
            free_call(&call);
        }
        device_close(dev);
    }
}

/* Whose state holds what an earlier sequence left. */
static device_call cached_call(const device_call *whole, int64_t sequences) {
    device_call call = *whole;
    call.kernel = DEVICE_SHORT_CONV_CACHED;
    call.attributes.short_conv.sequences = sequences;
    call.saved[0] = case_matrix(sequences * (TAPS - 1), COLUMNS, whole->x[0].dtype, 7, 1);
    return call;
}

static void check_pieces(device *dev, base_dtype type) {
    static const int64_t pieces[] = {1, 1, 2, 1, 5, 3, 40, 1, 9, 2, 1, 4};
    device_call whole = whole_call(type, false, false), call = cached_call(&whole, 1);
    device_matrix got = case_matrix(ROWS, COLUMNS, type, 8, 0);
    device_matrix positions = case_matrix(ROWS, 1, BASE_INT32, 9, 0);
    for (int64_t r = 0; r < ROWS; r++) case_set(&positions, r, 0, (double)r);
    case_run(dev, &whole);
    int64_t first = 0;
    for (int i = 0; first < ROWS; first += pieces[i++]) {
        call.x[0] = rows_of(&whole.x[0], first, pieces[i]);
        call.x[1] = rows_of(&positions, first, pieces[i]);
        call.y = rows_of(&got, first, pieces[i]);
        case_run(dev, &call);
    }
    assert_int_equal(first, ROWS);
    if (!same_rows(&got, &whole.y)) fail_msg("%s: pieces have other bits", base_dtype_name(type));
    free(call.saved[0].data), free(got.data), free(positions.data);
    free_call(&whole);
}

/* Token t of sequence q is row t + q of the whole; each sequence begins q tokens later. */
static void check_beside(device *dev, base_dtype type) {
    enum { SEQUENCES = 3, TOKENS = 9 };
    device_call whole = whole_call(type, false, false), call = cached_call(&whole, SEQUENCES);
    device_matrix x = case_matrix(SEQUENCES, COLUMNS, type, 8, 0);
    device_matrix got = case_matrix(SEQUENCES, COLUMNS, type, 8, 0);
    device_matrix positions = case_matrix(SEQUENCES, 1, BASE_INT32, 9, 0);
    call.x[0] = x, call.x[1] = positions, call.y = got;
    for (int64_t t = 0; t < TOKENS; t++) {
        for (int64_t q = 0; q < SEQUENCES; q++) {
            int64_t at = t >= q ? t - q : 0;
            case_set(&positions, q, 0, (double)at);
            device_matrix to = rows_of(&x, q, 1), from = rows_of(&whole.x[0], q + at, 1);
            memcpy(to.data, from.data, (size_t)(COLUMNS * base_dtype_bytes(type)));
        }
        case_run(dev, &call);
    }
    for (int64_t q = 0; q < SEQUENCES; q++) { /* the last row of each, alone */
        device_call alone = whole;
        alone.attributes.short_conv.length = TOKENS - q;
        alone.x[0] = rows_of(&whole.x[0], q, TOKENS - q);
        alone.y = rows_of(&whole.y, 0, TOKENS - q);
        case_run(dev, &alone);
        device_matrix last = rows_of(&alone.y, TOKENS - q - 1, 1), mine = rows_of(&got, q, 1);
        if (!same_rows(&mine, &last))
            fail_msg("%s: sequence %d has other bits", base_dtype_name(type), (int)q);
    }
    free(call.saved[0].data), free(x.data), free(got.data), free(positions.data);
    free_call(&whole);
}

static void generation(void **state) {
    (void)state;
    for (int isa = 0; isa < CASE_ISAS; isa++) {
        device *dev = case_device(2, case_isas[isa]);
        if (!dev) continue;
        for (int i = 0; i < 3; i++) {
            check_pieces(dev, types[i]);
            check_beside(dev, types[i]);
        }
        device_close(dev);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(packed),
                                       cmocka_unit_test(generation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
