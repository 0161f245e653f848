/* DEVICE_HEAD_LOSS, its backward and DEVICE_HEAD_DISTIL_BACKWARD on a CUDA device.
 *
 * Labelled rows are listed on the device, and how many there are stays there, too: all chunks are
 * launched, and those without rows end at once. A chunk has device_token_chunk rows, which are
 * copied into scratch; its logits have their type. Bits depend on the chunk's size, and on shapes
 * alone besides. */
#ifndef CUDA_HEAD_LOSS_H
#define CUDA_HEAD_LOSS_H

#include "device/device.h"

/* Of DEVICE_HEAD_PREFERENCE as well. */
sifr_status cuda_prepare_head_loss(device *dev, device_call *call,
                                   sifr_error *error) SIFR_MUST_CHECK;
sifr_status cuda_run_head_loss(device *dev, const device_call *call,
                               sifr_error *error) SIFR_MUST_CHECK;

#endif
