/* The host's side of heads with numbers as targets. */
#ifndef CUDA_HEAD_TARGETS_H
#define CUDA_HEAD_TARGETS_H

#include "device/cuda/cuda_launch.h"

sifr_status cuda_prepare_head_targets(device *dev, device_call *call, sifr_error *error);
sifr_status cuda_run_head_targets(device *dev, const device_call *call, sifr_error *error);

#endif
