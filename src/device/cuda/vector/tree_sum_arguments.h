/* Arguments of tree_sum.cu. */
#ifndef CUDA_TREE_SUM_ARGUMENTS_H
#define CUDA_TREE_SUM_ARGUMENTS_H

#include <stdint.h>

#include "device/device.h"

/* The most slices of a sum, and levels of the tree over them. */
enum { TREE_SLICES = DEVICE_MOST_SLICES, TREE_LEVELS = 6 };

/* `count` slices are 2^levels runs of `run` slices, run odd. */
typedef struct tree_sum_arguments {
    const void *slices[TREE_SLICES];
    int32_t run, levels;
    int64_t elements;
    void *out; /* may be one of the slices */
} tree_sum_arguments;

#endif
