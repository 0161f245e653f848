/* The exact sum of squares of a vector on a GPU (base/exact_sum.h). */
#ifndef CUDA_EXACT_SQUARES_H
#define CUDA_EXACT_SQUARES_H

#include "device/device.h"

/* Does not settle the sum: a launch adds less than 2^32 to a digit for 2^14 elements. */
sifr_status cuda_run_exact_squares(device *dev, const device_call *call, sifr_error *error);

#endif
