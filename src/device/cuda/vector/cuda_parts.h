/* The host's side of adding up parts of weight gradients. */
#ifndef CUDA_PARTS_H
#define CUDA_PARTS_H

#include "device/cuda/cuda_launch.h"

/* Writes a weight's gradient, FP32, or adds to it: the sums of `count` parts, which begin `length`
 * floats apart and are dense. Does nothing if it has no dtype. */
sifr_status cuda_add_parts(device *dev, const float *parts, int64_t count, int64_t length,
                           const device_matrix *to, bool add, sifr_error *error);

#endif
