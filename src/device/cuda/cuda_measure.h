/* What a GPU reaches: copies inside its memory, and products. */
#ifndef CUDA_MEASURE_H
#define CUDA_MEASURE_H

#include "device/device.h"

/* Bytes and operations a second, as device_measure has them. `memory`: a block of `bytes` for the
 * copies; NULL: one is taken, of so many bytes or of what is left. Products take a block of their
 * own. */
sifr_status cuda_measure(device *dev, void *memory, int64_t bytes, device_limits *out,
                         sifr_error *error) SIFR_MUST_CHECK;

#endif
