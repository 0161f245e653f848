/* Values of codes of 4 bits on a CUDA device. */
#ifndef CUDA_DEQUANTISE_H
#define CUDA_DEQUANTISE_H

#include "device/device.h"

sifr_status cuda_run_dequantise(device *dev, const device_call *call,
                                sifr_error *error) SIFR_MUST_CHECK;

#endif
