/* Arguments of folds.cu: the kernels that make one decision of many numbers. */
#ifndef CUDA_FOLDS_ARGUMENTS_H
#define CUDA_FOLDS_ARGUMENTS_H

#include <stdint.h>

#include "device/device.h"

enum {
    FOLD_THREADS = 256,
    FOLD_ROWS = 1024, /* values that lie in shared memory at a time */
    DECIDE_THREADS = 32
};

/* *sum = the sum of values[0 ... count), one after the other. */
typedef struct fold_loss_arguments {
    const float *values;
    int64_t count;
    double *sum;
} fold_loss_arguments;

#endif
