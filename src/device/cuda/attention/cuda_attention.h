/* DEVICE_ATTENTION and its backward on a GPU: heads of up to 256 values, or with relative positions
 * 128. */
#ifndef CUDA_ATTENTION_H
#define CUDA_ATTENTION_H

#include "device/device.h"

sifr_status cuda_prepare_attention(device *dev, device_call *call,
                                   sifr_error *error) SIFR_MUST_CHECK;
sifr_status cuda_run_attention(device *dev, const device_call *call,
                               sifr_error *error) SIFR_MUST_CHECK;

#endif
