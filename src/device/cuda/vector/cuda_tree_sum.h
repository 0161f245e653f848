/* The sum of slices of several ranks on a GPU, with the order and the bits of device/tree_sum.h. */
#ifndef CUDA_TREE_SUM_H
#define CUDA_TREE_SUM_H

#include "device/cuda/cuda_launch.h"

sifr_status cuda_start_sum(device *dev, device_queue queue, const device_sum *sum,
                           sifr_error *error) SIFR_MUST_CHECK;

#endif
