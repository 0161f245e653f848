/* DEVICE_HEAD_LOGITS on a CUDA device: the product of DEVICE_LINEAR, then scale and cap. */
#ifndef CUDA_HEAD_LOGITS_H
#define CUDA_HEAD_LOGITS_H

#include "device/device.h"

sifr_status cuda_prepare_head_logits(device *dev, device_call *call,
                                     sifr_error *error) SIFR_MUST_CHECK;
sifr_status cuda_run_head_logits(device *dev, const device_call *call,
                                 sifr_error *error) SIFR_MUST_CHECK;

#endif
