/* The host's side of clearing. */
#ifndef CUDA_CLEAR_H
#define CUDA_CLEAR_H

#include "device/cuda/cuda_launch.h"

sifr_status cuda_run_clear(device *dev, const device_call *call, sifr_error *error);

#endif
