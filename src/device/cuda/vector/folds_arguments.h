/* Arguments of folds.cu: the kernels that make one decision of many blocks' sums. */
#ifndef CUDA_FOLDS_ARGUMENTS_H
#define CUDA_FOLDS_ARGUMENTS_H

#include <stdint.h>

#include "device/device.h"

enum {
    FOLD_THREADS = 256,
    FOLD_ROWS = 1024,  /* values that lie in shared memory at a time */
    FOLD_CHUNK = 1024, /* squares that fold_squares adds to a part */
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

/* What a step came to. */
typedef struct fold_result {
    double loss_sum, gradient_norm;
    int64_t updated;
} fold_result;

typedef struct decide_arguments {
    const double *squares; /* their sum */
    const double *losses;  /* of all ranks: rank r's micro batch j at r micro_batches + j */
    int32_t ranks, micro_batches;
    bool across_first; /* the global batch goes through the ranks, then through micro batches */
    int64_t labelled;
    double loss_scale, clipping; /* clipping 0: none */
    device_step *step;           /* update_scale and update are written */
    fold_result *result;
} decide_arguments;

#endif
