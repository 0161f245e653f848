/* DEVICE_HEAD_PREFERENCE and its backward on a CUDA device, in three parts, as
 * device/cpu/head/head_preference.h has them. With several chunks the logits of each are computed
 * again for the gradients. */
#ifndef CUDA_HEAD_PREFERENCE_H
#define CUDA_HEAD_PREFERENCE_H

#include "device/device.h"

sifr_status cuda_run_head_preference(device *dev, const device_call *call,
                                     sifr_error *error) SIFR_MUST_CHECK;

#endif
