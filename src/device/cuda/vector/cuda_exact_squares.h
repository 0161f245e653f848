/* The exact sum of squares of a vector on a GPU (base/exact_sum.h). */
#ifndef CUDA_EXACT_SQUARES_H
#define CUDA_EXACT_SQUARES_H

#include "device/cuda/cuda_launch.h"
#include "device/cuda/vector/exact_squares_arguments.h"

/* Adds the squares of `count` numbers of FP32, BF16 or FP16 to *sum, both in the device's memory.
 * Each launch adds less than 2^32 to a digit for 2^14 numbers: a sum that is settled, or zeros,
 * takes 2^44 numbers before it must be settled. */
sifr_status cuda_exact_squares(device *dev, base_dtype type, const void *x, int64_t count,
                               base_exact_sum *sum, sifr_error *error) SIFR_MUST_CHECK;

#endif
