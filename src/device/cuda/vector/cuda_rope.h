/* The host's side of the rotary embedding, in both directions. */
#ifndef CUDA_ROPE_H
#define CUDA_ROPE_H

#include "device/cuda/cuda_launch.h"

sifr_status cuda_run_rope(device *dev, const device_call *call, sifr_error *error);

#endif
