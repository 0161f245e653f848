#include "device/cpu/vector/lamb.h"

#include <math.h>

#include "device/cpu/vector/exact_squares.h"
#include "device/cpu/vector/vectors.h"

sifr_status cpu_run_lamb_begin(device *dev, const device_call *call, sifr_error *error) {
    base_exact_sum *sums = call->y.data;
    BASE_TRY(cpu_run_update(dev, call, error));
    for (int s = 0; s < 2; s++) base_exact_settle(&sums[s]);
    return SIFR_OK;
}

/* The norm of the weight over that of its direction, from the sums of its parts. */
static float trust_of(const device_call *call) {
    double weights = sqrt(exact_total(&call->x[1], 0));
    double directions = sqrt(exact_total(&call->x[1], 1));
    if (!(weights > 0) || !(directions > 0)) return 1.0f;
    double least = (double)call->attributes.update.min_coeff;
    double most = (double)call->attributes.update.max_coeff;
    return (float)fmax(fmin(weights / directions, most), least);
}

sifr_status cpu_run_lamb(device *dev, const device_call *call, sifr_error *error) {
    device_call own = *call;
    own.attributes.update.trust = trust_of(call);
    return cpu_run_update(dev, &own, error);
}
