/* The host's side of layer norm and RMS norm. */
#ifndef CUDA_NORM_H
#define CUDA_NORM_H

#include "device/cuda/cuda_launch.h"

sifr_status cuda_run_norm(device *dev, const device_call *call, sifr_error *error);

sifr_status cuda_prepare_norm_backward(device *dev, device_call *call, sifr_error *error);
sifr_status cuda_run_norm_backward(device *dev, const device_call *call, sifr_error *error);

#endif
