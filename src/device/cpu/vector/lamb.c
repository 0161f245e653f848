#include "device/cpu/vector/lamb.h"

#include <math.h>

#include "base/exact_sum.h"
#include "device/cpu/vector/vectors.h"

sifr_status cpu_run_lamb_begin(device *dev, const device_call *call, sifr_error *error) {
    base_exact_sum *sums = call->y.data;
    BASE_TRY(cpu_run_update(dev, call, error));
    for (int s = 0; s < 2; s++) base_exact_settle(&sums[s]);
    return SIFR_OK;
}

/* The norm of the weight over that of its direction, from the sums of its parts. */
static float trust_of(const device_call *call) {
    const device_matrix *x = &call->x[1];
    base_exact_sum sums[2] = {0};
    for (int64_t r = 0; r < x->rows; r++) {
        const base_exact_sum *part = (const void *)((const int64_t *)x->data + r * x->stride);
        for (int s = 0; s < 2; s++) base_exact_merge(&sums[s], &part[s]);
    }
    double weights = sqrt(base_exact_round(&sums[0])),
           directions = sqrt(base_exact_round(&sums[1]));
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
