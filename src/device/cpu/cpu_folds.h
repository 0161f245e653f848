/* The numbers of a step on the CPU, and sums of ranks' slices: see device.h. */
#ifndef CPU_FOLDS_H
#define CPU_FOLDS_H

#include "device/device.h"

sifr_status cpu_fold_losses(device *dev, const float *losses, int64_t rows, double *sum,
                            sifr_error *error);
sifr_status cpu_decide(device *dev, const device_decision *decision, sifr_error *error);
sifr_status cpu_start_sum(device *dev, device_queue queue, const device_sum *sum,
                          sifr_error *error);

#endif
