#include "device/cpu/cpu_folds.h"

#include <math.h>

#include "device/tree_sum.h"

sifr_status cpu_fold_losses(device *dev, const float *losses, int64_t rows, double *sum,
                            sifr_error *error) {
    double total = 0;
    (void)dev, (void)error;
    for (int64_t i = 0; i < rows; i++) total += (double)losses[i];
    *sum = total;
    return SIFR_OK;
}

sifr_status cpu_decide(device *dev, const device_decision *d, sifr_error *error) {
    double losses = 0, scale = 1;
    int64_t bytes = device_part_bytes(d->micro_batches);
    const char *parts = d->parts;
    base_exact_sum sum = {0};
    (void)dev, (void)error;
    for (int32_t r = 0; r < d->owners; r++)
        base_exact_merge(&sum, (const base_exact_sum *)(const void *)(parts + r * bytes));
    int32_t neighbours = d->across_first ? d->owners : 1; /* whose micro batches take turns */
    for (int32_t first = 0; first < d->ranks; first += neighbours) {
        for (int32_t i = 0; i < neighbours * d->micro_batches; i++) {
            const void *own = parts + (first + i % neighbours) * bytes + sizeof sum;
            losses += ((const double *)own)[i / neighbours];
        }
    }
    double squares = base_exact_round(&sum), norm = sqrt(squares) / d->loss_scale;
    bool updated = isfinite(squares) && isfinite(losses) && d->labelled > 0;
    if (d->clipping > 0) scale = 1 / fmax(1, (norm + 1e-6) / d->clipping); /* DeepSpeed's */
    d->step->update_scale = (float)(scale / d->loss_scale);
    d->step->update = updated;
    *d->outcome = (device_outcome){.loss_sum = losses, .gradient_norm = norm, .updated = updated};
    return SIFR_OK;
}

sifr_status cpu_start_sum(device *dev, device_queue queue, const device_sum *sum,
                          sifr_error *error) {
    (void)dev, (void)queue, (void)error;
    device_tree_sum_typed(sum->type, sum->sum, sum->slices, sum->count, sum->elements, sum->out);
    return SIFR_OK;
}
