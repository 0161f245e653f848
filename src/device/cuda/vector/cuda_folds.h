/* The numbers of a step on a GPU: see device.h. */
#ifndef CUDA_FOLDS_H
#define CUDA_FOLDS_H

#include "device/cuda/cuda_launch.h"
#include "device/cuda/vector/folds_arguments.h"

sifr_status cuda_fold_losses(device *dev, const float *losses, int64_t rows, double *sum,
                             sifr_error *error) SIFR_MUST_CHECK;

sifr_status cuda_decide(device *dev, const device_decision *decision,
                        sifr_error *error) SIFR_MUST_CHECK;

#endif
