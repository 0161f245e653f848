/* Magnitudes of a product's columns (DoRA), against double precision: see support/op_case.h. Norms
 * are constants to the gradient.
 * in test_asan */
#include "support/op_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* columns: out; words: in; variant: TRANSPOSED, NO_BIAS, RANK x r. */
enum { TRANSPOSED = 1, NO_BIAS = 2, RANK = 4 };

static void shape(const op_case *c, base_dtype type, device_call *call) {
    bool transposed = c->variant & TRANSPOSED;
    int64_t rank = c->variant / RANK, in = c->words, out = c->columns;
    call->attributes.magnitude.transposed = transposed;
    call->attributes.magnitude.columns = (int32_t)out;
    call->attributes.magnitude.scale = 0.75f;
    call->x[0] = call->y = op_sized(c->rows, out, type);
    call->x[1] = op_sized(rank, in, type);
    call->x[2] = op_sized(out, rank, type);
    call->x[3] = op_sized(1, out, c->variant & NO_BIAS ? BASE_NONE : type);
    call->w[0] = op_sized(transposed ? in : out, transposed ? out : in, type);
    call->w[1] = op_sized(1, out, type);
    call->saved[0] = op_sized(out, 1, BASE_FP32);
}

static double norm_of(const device_call *call, const op_values *v, int64_t o) {
    int64_t in = call->x[1].columns, out = call->x[2].rows, rank = call->x[1].rows;
    double sum = 0;
    for (int64_t i = 0; i < in; i++) {
        double value =
            call->attributes.magnitude.transposed ? v->w[0][i * out + o] : v->w[0][o * in + i];
        for (int64_t k = 0; k < rank; k++)
            value += 0.75 * v->x[2][o * rank + k] * v->x[1][k * in + i];
        sum += value * value;
    }
    return sqrt(sum);
}

static void reference(const device_call *call, const op_values *v) {
    int64_t out = call->y.columns;
    for (int64_t o = 0; o < out; o++) {
        v->saved[0][o] = norm_of(call, v, o);
        for (int64_t r = 0; r < call->y.rows; r++)
            v->y[r * out + o] =
                v->x[0][r * out + o] * v->w[1][o] / v->saved[0][o] + (v->x[3] ? v->x[3][o] : 0);
    }
}

#define MAGNITUDE(rows_, out, in, variant_)                                                        \
    {                                                                                              \
        .name = "magnitude", .forward = DEVICE_MAGNITUDE, .backward = DEVICE_MAGNITUDE_BACKWARD,   \
        .rows = rows_, .columns = out, .words = in, .variant = variant_, .shape = shape,           \
        .reference = reference, .length = (in) > (rows_) ? (in) : (rows_),                         \
        .reads = OP_X0 | OP_W1 | OP_SAVED0, .wants = OP_X0 | OP_W1, .error_fp32 = 4                \
    }

static const op_case cases[] = {
    MAGNITUDE(1, 1, 1, RANK),
    MAGNITUDE(5, 7, 3, 2 * RANK),
    MAGNITUDE(33, 40, 600, 4 * RANK),
    MAGNITUDE(17, 70, 20, 3 * RANK + NO_BIAS),
    MAGNITUDE(20, 33, 300, 2 * RANK + TRANSPOSED),
    MAGNITUDE(3, 18, 9, RANK + TRANSPOSED + NO_BIAS),
};

static void magnitudes(void **state) {
    (void)state;
    op_cases_run(cases, sizeof cases / sizeof *cases);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(magnitudes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
