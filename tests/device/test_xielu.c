/* xIELU: against double precision and finite differences (see support/op_case.h), also close to 0
 * and far below it; and its weights' gradients have the bits of the whole when tokens come in two
 * calls. in test_asan */
#include "support/op_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "device/matrix_case.h"
#include "device/xielu_order.h"

static void shape(const op_case *c, base_dtype type, device_call *call) {
    call->attributes.xielu.beta = 0.5f;
    /* Far enough from 0 for values to lie above it, in some cases. */
    call->attributes.xielu.epsilon = c->variant ? -0.25f : -1e-6f;
    call->x[0] = call->y = op_sized(c->rows, c->columns, type);
    call->w[0] = call->w[1] = op_sized(1, 1, type);
}

static double softplus(double x) {
    return log1p(exp(x));
}

static void reference(const device_call *call, const op_values *v) {
    double beta = (double)call->attributes.xielu.beta;
    double epsilon = (double)call->attributes.xielu.epsilon;
    double positive = softplus(v->w[0][0]), negative = beta + softplus(v->w[1][0]);
    for (int64_t i = 0; i < call->y.rows * call->y.columns; i++) {
        double x = v->x[0][i];
        v->y[i] = x > 0 ? positive * x * x : negative * (expm1(fmin(x, epsilon)) - x);
        v->y[i] += beta * x;
    }
}

#define XIELU(r, n, apart, from, to)                                                               \
    {                                                                                              \
        .name = "xielu", .forward = DEVICE_XIELU, .backward = DEVICE_XIELU_BACKWARD,               \
        .shape = shape, .reference = reference, .rows = r, .columns = n, .variant = apart,         \
        .length = (r) * (n) + 8, .reads = OP_X0 | OP_W0 | OP_W1, .wants = OP_X0 | OP_W0 | OP_W1,   \
        .low = from, .high = to, .error_fp32 = 16                                                  \
    }

static const op_case cases[] = {
    XIELU(1, 1, 0, 0.1, 2),      XIELU(7, 5, 0, -2, -0.1),    XIELU(33, 17, 0, 0.1, 3),
    XIELU(33, 17, 0, -9, -0.1),  XIELU(3, 600, 0, 0.1, 2),    XIELU(3, 600, 0, -30, -0.1),
    XIELU(140, 19, 0, -1, -0.1), XIELU(5, 40, 1, -0.2, -0.1), XIELU(5, 40, 1, -3, -0.3),
};

static void test_cases(void **state) {
    (void)state;
    op_cases_run(cases, (int)(sizeof cases / sizeof *cases));
}

/* --- small numbers, in fp32 --- */

static void close_to_zero(void **state) {
    (void)state;
    enum { COUNT = 200 };
    for (int isa = 0; isa < CASE_ISAS; isa++) {
        device *dev = case_device(2, case_isas[isa]);
        if (!dev) continue;
        device_call call = {.kernel = DEVICE_XIELU};
        call.attributes.xielu.beta = 0.5f;
        call.attributes.xielu.epsilon = -1e-6f;
        call.x[0] = case_matrix(1, COUNT, BASE_FP32, 1, 0);
        call.y = case_matrix(1, COUNT, BASE_FP32, 2, 0);
        call.w[0] = case_matrix(1, 1, BASE_FP32, 3, 1);
        call.w[1] = case_matrix(1, 1, BASE_FP32, 4, 1);
        for (int i = 0; i < COUNT; i++)
            case_set(&call.x[0], 0, i, (i % 2 ? 1 : -1) * pow(2, -i / 4.0 + 3));
        case_run(dev, &call);
        double p = softplus(case_get(&call.w[0], 0, 0)),
               n = 0.5 + softplus(case_get(&call.w[1], 0, 0));
        for (int i = 0; i < COUNT; i++) {
            double x = case_get(&call.x[0], 0, i), epsilon = (double)-1e-6f;
            double bent = expm1(fmin(x, epsilon));
            double y = (x > 0 ? p * x * x : n * (bent - x)) + 0.5 * x;
            double size = x > 0 ? y : n * (fabs(bent) + fabs(x)) + fabs(x);
            double off = fabs(case_get(&call.y, 0, i) - y);
            if (off > 4e-7 * size) fail_msg("%s: x %g: %g off %g", case_isas[isa], x, off, y);
        }
        free(call.x[0].data), free(call.y.data), free(call.w[0].data), free(call.w[1].data);
        device_close(dev);
    }
}

/* --- tokens in two calls --- */

enum { ROWS = 300, COLUMNS = 37 };

static device_matrix rows_of(const device_matrix *m, int64_t first, int64_t rows) {
    device_matrix part = *m;
    part.data = (char *)m->data + first * m->stride * base_dtype_bytes(m->dtype);
    part.rows = rows;
    return part;
}

static void check_tiles(device *dev, base_dtype type, const char *isa) {
    device_call whole = {.kernel = DEVICE_XIELU_BACKWARD};
    whole.attributes.xielu.beta = 0.5f;
    whole.attributes.xielu.epsilon = -1e-6f;
    whole.x[0] = case_matrix(ROWS, COLUMNS, type, 1, 1);
    whole.dy = case_matrix(ROWS, COLUMNS, type, 2, 1);
    device_call parts;
    for (int i = 0; i < 2; i++) {
        whole.w[i] = case_matrix(1, 1, type, 3 + i, 1);
        whole.dw[i] = case_matrix(1, 1, BASE_FP32, 5, 0);
    }
    parts = whole;
    for (int i = 0; i < 2; i++) parts.dw[i] = case_matrix(1, 1, BASE_FP32, 5, 0);
    case_run(dev, &whole);
    for (int64_t first = 0; first < ROWS; first += XIELU_PART) {
        int64_t rows = ROWS - first < XIELU_PART ? ROWS - first : XIELU_PART;
        device_call part = parts;
        part.x[0] = rows_of(&parts.x[0], first, rows);
        part.dy = rows_of(&parts.dy, first, rows);
        part.accumulate_dw = first > 0;
        case_run(dev, &part);
    }
    for (int i = 0; i < 2; i++) {
        if (memcmp(whole.dw[i].data, parts.dw[i].data, sizeof(float)) != 0)
            fail_msg("%s, %s: dw[%d] of parts has other bits", isa, base_dtype_name(type), i);
        assert_true(case_get(&whole.dw[i], 0, 0) != 0);
        free(whole.w[i].data), free(whole.dw[i].data), free(parts.dw[i].data);
    }
    free(whole.x[0].data), free(whole.dy.data);
}

static void tiles(void **state) {
    (void)state;
    for (int isa = 0; isa < CASE_ISAS; isa++) {
        device *dev = case_device(2, case_isas[isa]);
        if (!dev) continue;
        check_tiles(dev, BASE_FP32, case_isas[isa]);
        check_tiles(dev, BASE_BF16, case_isas[isa]);
        device_close(dev);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases),
                                       cmocka_unit_test(close_to_zero), cmocka_unit_test(tiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
