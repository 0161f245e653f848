/* The host's side of kernels that move rows. */
#ifndef CUDA_MOVES_H
#define CUDA_MOVES_H

#include "device/cuda/cuda_launch.h"

sifr_status cuda_run_embedding(device *dev, const device_call *call, sifr_error *error);
sifr_status cuda_run_rows(device *dev, const device_call *call, sifr_error *error);
sifr_status cuda_run_rows_backward(device *dev, const device_call *call, sifr_error *error);
sifr_status cuda_run_split_qkv(device *dev, const device_call *call, sifr_error *error);
sifr_status cuda_run_unfold(device *dev, const device_call *call, sifr_error *error);

#endif
