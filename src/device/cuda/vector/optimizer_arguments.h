/* Arguments of the kernels on flat vectors: adam.cu, squares.cu. */
#ifndef CUDA_OPTIMIZER_ARGUMENTS_H
#define CUDA_OPTIMIZER_ARGUMENTS_H

#include <stdint.h>

#include "device/device.h"

typedef struct adam_vector {
    void *data; /* NULL: none */
    int32_t type;
} adam_vector;

enum { ADAM_WEIGHTS, ADAM_MOMENT1, ADAM_MOMENT2, ADAM_STATES };

/* Packs of a thread. */
enum { ADAM_PACKS = 4 };

typedef struct adam_arguments {
    adam_vector gradient, states[ADAM_STATES], copy;
    int64_t count;
    uint64_t element; /* in the model, of the first one: bf16 states are rounded by its number */
    const device_step *step;
    float epsilon, weight_decay;
    bool decoupled;
} adam_arguments;

/* Sums of a block of squares, each taken by a thread, and threads of a block of the grid. */
enum { SQUARE_LANES = 8, SQUARE_THREADS = 256 };

typedef struct squares_arguments {
    const void *data;
    int64_t count;
    double *sums; /* one for DEVICE_BLOCK elements */
} squares_arguments;

#endif
