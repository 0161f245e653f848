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

sifr_status cpu_fold_squares(device *dev, const device_squares *squares, double *sum,
                             sifr_error *error) {
    double total = 0;
    int64_t at = 0;
    (void)dev, (void)error;
    for (int32_t u = 0; u < squares->units; u++) {
        for (int32_t r = 0; r < squares->ranks; r++) {
            const double *blocks = squares->squares + r * squares->own + at;
            for (int64_t i = 0; i < squares->unit_blocks[u]; i++) total += blocks[i];
        }
        at += squares->unit_blocks[u];
    }
    *sum = total;
    return SIFR_OK;
}

sifr_status cpu_decide(device *dev, const device_decision *d, sifr_error *error) {
    double losses = 0, scale = 1, squares = *d->squares;
    (void)dev, (void)error;
    for (int32_t g = 0; g < d->ranks * d->micro_batches; g++) {
        int32_t rank = d->across_first ? g % d->ranks : g / d->micro_batches;
        int32_t micro_batch = d->across_first ? g / d->ranks : g % d->micro_batches;
        losses += d->losses[rank * d->micro_batches + micro_batch];
    }
    double norm = sqrt(squares) / d->loss_scale;
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
