/* Checks the operands of PowerSGD's kernels. */
#include "device/check/check.h"
#include "device/check/operands.h"

static sifr_status check_vector_of(const device_call *call, const device_matrix *m,
                                   const char *operand, int64_t elements, sifr_error *error) {
    return device_check(call, m, operand, 1, elements, BASE_FP32, error);
}

/* A factor of rows of `columns`. */
static sifr_status check_factor(const device_call *call, const device_matrix *m,
                                const char *operand, int64_t columns, sifr_error *error) {
    if (m->rows < 1 || m->rows > DEVICE_MOST_POWER_RANK)
        return base_fail(error, SIFR_USAGE, "%s: %s has rank %lld, not 1 to %d",
                         device_kernel_name(call->kernel), operand, (long long)m->rows,
                         DEVICE_MOST_POWER_RANK);
    return device_check(call, m, operand, m->rows, columns, BASE_FP32, error);
}

sifr_status device_check_power_add(const device_call *call, sifr_error *error) {
    BASE_TRY(check_vector_of(call, &call->y, "y", call->y.columns, error));
    return check_vector_of(call, &call->x[0], "x[0]", call->y.columns, error);
}

sifr_status device_check_power_factor(const device_call *call, sifr_error *error) {
    const device_matrix *m = &call->x[0], *other = &call->x[1];
    bool left = call->kernel == DEVICE_POWER_LEFT;
    BASE_TRY(device_check(call, m, "x[0]", m->rows, m->columns, BASE_FP32, error));
    BASE_TRY(check_factor(call, other, "x[1]", left ? m->columns : m->rows, error));
    return device_check(call, &call->y, "y", other->rows, left ? m->rows : m->columns, BASE_FP32,
                        error);
}

sifr_status device_check_power_base(const device_call *call, sifr_error *error) {
    return check_factor(call, &call->y, "y", call->y.columns, error);
}

static sifr_status check_factors(const device_call *call, sifr_error *error) {
    const device_matrix *left = &call->x[0], *right = &call->x[1];
    BASE_TRY(check_factor(call, left, "x[0]", left->columns, error));
    return device_check(call, right, "x[1]", left->rows, right->columns, BASE_FP32, error);
}

sifr_status device_check_power_build(const device_call *call, sifr_error *error) {
    int64_t all = call->x[0].columns * call->x[1].columns, first = call->attributes.power.first;
    BASE_TRY(check_factors(call, error));
    BASE_TRY(check_vector_of(call, &call->y, "y", call->y.columns, error));
    if (first >= 0 && first + call->y.columns <= all) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: elements %lld to %lld of %lld",
                     device_kernel_name(call->kernel), (long long)first,
                     (long long)(first + call->y.columns), (long long)all);
}

sifr_status device_check_power_keep(const device_call *call, sifr_error *error) {
    int64_t all = call->x[0].columns * call->x[1].columns;
    const device_matrix *error_of = &call->saved[0], *base = &call->saved[1];
    BASE_TRY(check_factors(call, error));
    BASE_TRY(check_vector_of(call, &call->y, "y", all, error));
    if (error_of->dtype != BASE_NONE)
        BASE_TRY(check_vector_of(call, error_of, "saved[0]", all, error));
    if (base->dtype != BASE_NONE)
        BASE_TRY(device_check(call, base, "saved[1]", call->x[1].rows, call->x[1].columns,
                              BASE_FP32, error));
    if (call->attributes.power.ranks >= 1) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: %d ranks", device_kernel_name(call->kernel),
                     (int)call->attributes.power.ranks);
}
