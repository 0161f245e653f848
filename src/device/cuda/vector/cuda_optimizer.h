/* Launches of the optimizer. */
#ifndef CUDA_OPTIMIZER_H
#define CUDA_OPTIMIZER_H

#include "device/device.h"

sifr_status cuda_run_update(device *dev, const device_call *call, sifr_error *error);

#endif
