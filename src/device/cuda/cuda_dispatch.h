/* Which functions prepare and run which kernel on a GPU. */
#ifndef CUDA_DISPATCH_H
#define CUDA_DISPATCH_H

#include "device/device.h"

/* Whether GPUs have a kernel. */
bool cuda_has(device_kernel kernel);

/* device_prepare and device_run of a device that begins with cuda_base; operands are checked.
 * Preparing needs no GPU. SIFR_USAGE names a kernel that GPUs do not have. */
sifr_status cuda_prepare(device *dev, device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status cuda_run(device *dev, const device_call *call, sifr_error *error) SIFR_MUST_CHECK;

#endif
