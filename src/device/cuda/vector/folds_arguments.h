/* Arguments of folds.cu: the kernels that make one decision of many blocks' sums. */
#ifndef CUDA_FOLDS_ARGUMENTS_H
#define CUDA_FOLDS_ARGUMENTS_H

#include <stdint.h>

#include "device/device.h"

enum {
    FOLD_THREADS = 256,
    FOLD_ROWS = 1024, /* values that lie in shared memory at a time */
    FOLD_CHUNK = DEVICE_SQUARES_A_PART,
    FOLD_LANES = 32,
    FOLD_UNITS = 32 /* units of a launch */
};

/* *sum = the sum of values[0 ... count), one after the other. */
typedef struct fold_loss_arguments {
    const float *values;
    int64_t count;
    double *sum;
} fold_loss_arguments;

typedef struct fold_parts_arguments {
    const double *parts;
    int64_t count;
    double *sum;
} fold_parts_arguments;

/* The blocks of a unit of the model: [first, first + blocks) of what each rank has. */
typedef struct fold_unit {
    int64_t first, blocks;
    int64_t part; /* place of its first part; a unit of n blocks has ceil(n / FOLD_CHUNK) */
} fold_unit;

/* Rank r's squares begin at squares + r own. */
typedef struct fold_squares_arguments {
    const double *squares;
    double *parts;
    int64_t own;
    int32_t ranks, units;
    fold_unit unit[FOLD_UNITS];
} fold_squares_arguments;

#endif
