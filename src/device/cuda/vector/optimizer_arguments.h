/* Arguments of the kernels on flat vectors: those of updates.h, squares.cu. */
#ifndef CUDA_OPTIMIZER_ARGUMENTS_H
#define CUDA_OPTIMIZER_ARGUMENTS_H

#include <stdint.h>

#include "device/device.h"

typedef struct update_operand {
    void *data; /* NULL: none */
    int32_t type;
} update_operand;

/* Packs of a thread. */
enum { UPDATE_PACKS = 4 };

typedef struct update_arguments {
    update_operand gradient, kinds[1 + DEVICE_SAVED], copy; /* kinds: weights, then states */
    int64_t count;
    uint64_t element; /* in the model, of the first one: bf16 states are rounded by its number */
    const device_step *step;
    float epsilon, weight_decay;
    bool decoupled, nesterov;
} update_arguments;

/* Sums of a block of squares, each taken by a thread, and threads of a block of the grid. */
enum { SQUARE_LANES = 8, SQUARE_THREADS = 256 };

typedef struct squares_arguments {
    const void *data;
    int64_t count;
    double *sums; /* one for DEVICE_BLOCK elements */
} squares_arguments;

#endif
