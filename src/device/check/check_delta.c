/* Checks the operands of the gated delta rule. */
#include "device/check/check.h"
#include "device/check/operands.h"

static bool has(const device_matrix *m) {
    return m->dtype != BASE_NONE;
}

/* Inputs and weights, for `rows` rows of the type of x0. */
static sifr_status check_inputs(const device_call *call, int64_t rows, int64_t value_columns,
                                sifr_error *error) {
    int64_t keys = call->attributes.delta.key_heads, values = call->attributes.delta.value_heads;
    int64_t columns = call->x[0].columns;
    base_dtype type = call->x[0].dtype;
    BASE_TRY(device_check_activations(call, &call->x[0], "x[0]", error));
    bool fits = keys >= 1 && values >= 1 && values % keys == 0 && columns % keys == 0 &&
                value_columns >= 1 && value_columns % values == 0;
    if (!fits)
        return base_fail(error, SIFR_USAGE,
                         "%s: %lld key heads and %lld value heads do not fit %lld and %lld columns",
                         device_kernel_name(call->kernel), (long long)keys, (long long)values,
                         (long long)columns, (long long)value_columns);
    BASE_TRY(device_check(call, &call->x[0], "x[0]", rows, columns, type, error));
    BASE_TRY(device_check(call, &call->x[1], "x[1]", rows, columns, type, error));
    BASE_TRY(device_check(call, &call->x[2], "x[2]", rows, value_columns, type, error));
    BASE_TRY(device_check(call, &call->x[3], "x[3]", rows, values, type, error));
    BASE_TRY(device_check(call, &call->x[4], "x[4]", rows, values, type, error));
    BASE_TRY(device_check(call, &call->w[0], "w[0]", 1, values, type, error));
    return device_check(call, &call->w[1], "w[1]", 1, values, type, error);
}

static sifr_status check_gradients(const device_call *call, sifr_error *error) {
    static const char *const names[] = {"dx[0]", "dx[1]", "dx[2]", "dx[3]", "dx[4]"};
    for (int i = 0; i < 5; i++) {
        const device_matrix *x = &call->x[i];
        BASE_TRY(device_check(call, &call->dx[i], names[i], x->rows, x->columns, x->dtype, error));
    }
    for (int i = 0; i < 2; i++) {
        if (!has(&call->dw[i])) continue;
        BASE_TRY(device_check(call, &call->dw[i], i ? "dw[1]" : "dw[0]", 1, call->w[i].columns,
                              BASE_FP32, error));
    }
    return SIFR_OK;
}

sifr_status device_check_delta(const device_call *call, sifr_error *error) {
    bool backward = call->kernel == DEVICE_DELTA_BACKWARD;
    const device_matrix *y = backward ? &call->dy : &call->y;
    int64_t length = call->attributes.delta.length, sequences = call->attributes.delta.sequences;
    BASE_TRY(device_check_activations(call, y, backward ? "dy" : "y", error));
    if (length < 1 || sequences < 1 || y->rows % length || y->rows / length != sequences)
        return base_fail(error, SIFR_USAGE, "%s: %lld sequences of %lld do not fit %lld rows",
                         device_kernel_name(call->kernel), (long long)sequences, (long long)length,
                         (long long)y->rows);
    BASE_TRY(check_inputs(call, y->rows, y->columns, error));
    BASE_TRY(
        device_check(call, y, backward ? "dy" : "y", y->rows, y->columns, call->x[0].dtype, error));
    if (has(&call->x[5]))
        BASE_TRY(device_check(call, &call->x[5], "x[5]", y->rows, 1, BASE_INT32, error));
    return backward ? check_gradients(call, error) : SIFR_OK;
}

sifr_status device_check_delta_cached(const device_call *call, sifr_error *error) {
    int64_t rows = call->x[0].rows, sequences = call->attributes.delta.sequences;
    if (sequences < 1 || (sequences > 1 && rows != sequences))
        return base_fail(error, SIFR_USAGE, "%s: %lld rows are not one of each of %lld sequences",
                         device_kernel_name(call->kernel), (long long)rows, (long long)sequences);
    BASE_TRY(check_inputs(call, rows, call->y.columns, error));
    BASE_TRY(device_check(call, &call->x[5], "x[5]", rows, 1, BASE_INT32, error));
    BASE_TRY(device_check(call, &call->y, "y", rows, call->y.columns, call->x[0].dtype, error));
    int64_t heads = call->attributes.delta.value_heads;
    int64_t key_dim = call->x[0].columns / call->attributes.delta.key_heads;
    return device_check(call, &call->saved[0], "saved[0]", sequences * heads * key_dim,
                        call->y.columns / heads, BASE_FP32, error);
}
