/* Arguments of heads with numbers as targets, for both sides. Strides are in elements. */
#ifndef CUDA_TARGETS_ARGUMENTS_H
#define CUDA_TARGETS_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "device/call.h"

/* A warp has a row of losses. */
enum { TARGETS_THREADS = 128, TARGETS_WARPS = TARGETS_THREADS / 32 };

/* Rows of one chunk. */
typedef struct targets_arguments {
    const void *x, *w, *bias; /* bias: or NULL */
    const float *targets;
    const device_step *step;
    float *loss;
    float *gradients; /* of the logits: rows x columns; NULL: of no use */
    int64_t rows, width, columns, x_stride, w_stride, targets_stride, loss_stride;
    bool multilabel, wide;
    uint8_t reserved[6];
} targets_arguments;

typedef struct targets_dx_arguments {
    const void *w;
    const float *targets, *gradients;
    void *dx;
    int64_t rows, width, columns, w_stride, targets_stride, dx_stride;
    uint32_t pieces; /* of a row */
    bool wide, add;
    uint8_t reserved[2];
} targets_dx_arguments;

/* Rows are cut into slices of `each`; a slice writes one part: of dw columns x width, then of db
 * columns. */
typedef struct targets_dw_arguments {
    const void *x;
    const float *targets, *gradients;
    float *parts;
    int64_t rows, each, width, columns, x_stride, targets_stride;
    uint32_t tiles; /* of a row of dw */
    bool wide, wants_dw;
    uint8_t reserved[2];
} targets_dw_arguments;

#endif
