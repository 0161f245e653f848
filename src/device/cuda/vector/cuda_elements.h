/* Launches of the kernels that compute element by element. */
#ifndef CUDA_ELEMENTS_H
#define CUDA_ELEMENTS_H

#include "device/device.h"

sifr_status cuda_run_elementwise(device *dev, const device_call *call, sifr_error *error);

#endif
