/* Launches of the kernels on flat vectors: the optimizer and the gradient norm. */
#ifndef CUDA_OPTIMIZER_H
#define CUDA_OPTIMIZER_H

#include "device/device.h"

sifr_status cuda_run_update(device *dev, const device_call *call, sifr_error *error);
sifr_status cuda_run_square_sums(device *dev, const device_call *call, sifr_error *error);

#endif
