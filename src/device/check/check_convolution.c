/* Checks the operands of convolutions over tokens. */
#include "device/check/check.h"
#include "device/check/operands.h"

static bool has(const device_matrix *m) {
    return m->dtype != BASE_NONE;
}

/* The weights, for `columns` columns of a type. */
static sifr_status check_weights(const device_call *call, int64_t columns, base_dtype type,
                                 sifr_error *error) {
    const device_matrix *w = &call->w[0], *bias = &call->w[1];
    if (w->columns < 2 || w->columns > DEVICE_MOST_TAPS)
        return base_fail(error, SIFR_USAGE, "%s: w[0] has %lld columns, expected 2 to %d",
                         device_kernel_name(call->kernel), (long long)w->columns, DEVICE_MOST_TAPS);
    BASE_TRY(device_check(call, w, "w[0]", columns, w->columns, type, error));
    return has(bias) ? device_check(call, bias, "w[1]", 1, columns, type, error) : SIFR_OK;
}

static sifr_status check_gradients(const device_call *call, const device_matrix *dy,
                                   sifr_error *error) {
    const device_matrix *dw = &call->dw[0], *db = &call->dw[1];
    if (has(&call->dx[0]))
        BASE_TRY(
            device_check(call, &call->dx[0], "dx[0]", dy->rows, dy->columns, dy->dtype, error));
    if (has(dw)) {
        BASE_TRY(
            device_check(call, dw, "dw[0]", dy->columns, call->w[0].columns, BASE_FP32, error));
        BASE_TRY(device_check(call, &call->x[0], "x[0]", dy->rows, dy->columns, dy->dtype, error));
    }
    return has(db) ? device_check(call, db, "dw[1]", 1, dy->columns, BASE_FP32, error) : SIFR_OK;
}

sifr_status device_check_short_conv(const device_call *call, sifr_error *error) {
    bool backward = call->kernel == DEVICE_SHORT_CONV_BACKWARD;
    const device_matrix *y = backward ? &call->dy : &call->y;
    int64_t length = call->attributes.short_conv.length;
    BASE_TRY(device_check_activations(call, y, backward ? "dy" : "y", error));
    if (length < 1 || y->rows % length != 0)
        return base_fail(error, SIFR_USAGE, "%s: sequences of %lld do not fit %lld rows",
                         device_kernel_name(call->kernel), (long long)length, (long long)y->rows);
    BASE_TRY(check_weights(call, y->columns, y->dtype, error));
    if (has(&call->x[1]))
        BASE_TRY(device_check(call, &call->x[1], "x[1]", y->rows, 1, BASE_INT32, error));
    if (backward) return check_gradients(call, y, error);
    return device_check(call, &call->x[0], "x[0]", y->rows, y->columns, y->dtype, error);
}

sifr_status device_check_short_conv_cached(const device_call *call, sifr_error *error) {
    const device_matrix *x = &call->x[0];
    int64_t sequences = call->attributes.short_conv.sequences;
    BASE_TRY(device_check_activations(call, x, "x[0]", error));
    if (sequences < 1 || (sequences > 1 && x->rows != sequences))
        return base_fail(error, SIFR_USAGE, "%s: %lld rows are not one of each of %lld sequences",
                         device_kernel_name(call->kernel), (long long)x->rows,
                         (long long)sequences);
    BASE_TRY(check_weights(call, x->columns, x->dtype, error));
    BASE_TRY(device_check(call, &call->x[1], "x[1]", x->rows, 1, BASE_INT32, error));
    BASE_TRY(device_check(call, &call->y, "y", x->rows, x->columns, x->dtype, error));
    return device_check(call, &call->saved[0], "saved[0]", sequences * (call->w[0].columns - 1),
                        x->columns, x->dtype, error);
}
