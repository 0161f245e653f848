/* Magnitudes of a product's columns on a CUDA device. */
#ifndef CUDA_MAGNITUDE_H
#define CUDA_MAGNITUDE_H

#include "device/device.h"

sifr_status cuda_run_magnitude(device *dev, const device_call *call,
                               sifr_error *error) SIFR_MUST_CHECK;
sifr_status cuda_run_magnitude_backward(device *dev, const device_call *call,
                                        sifr_error *error) SIFR_MUST_CHECK;

#endif
