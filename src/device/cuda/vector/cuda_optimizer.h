/* Launches of the optimizer. */
#ifndef CUDA_OPTIMIZER_H
#define CUDA_OPTIMIZER_H

#include "device/device.h"

sifr_status cuda_run_update(device *dev, const device_call *call, sifr_error *error);

/* LAMB's last kernel; its scratch holds the trust ratio, which a launch before it makes. */
sifr_status cuda_prepare_lamb(device *dev, device_call *call, sifr_error *error);
sifr_status cuda_run_lamb(device *dev, const device_call *call, sifr_error *error);

#endif
