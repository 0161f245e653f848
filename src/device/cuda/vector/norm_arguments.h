/* Arguments of layer norm and RMS norm, for both sides. A unit is a row, or one of its groups of
 * columns. Strides are in elements. */
#ifndef CUDA_NORM_ARGUMENTS_H
#define CUDA_NORM_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

/* A warp has a unit of up to NORM_FEW columns, a block a longer one. Backward, it has NORM_UNITS of
 * them, one after the other, and the block writes one part of each weight gradient. Parts are added
 * by chunks of tokens. All that fixes the order of sums, so it depends on the shape alone. */
enum { NORM_THREADS = 256, NORM_WARPS = NORM_THREADS / 32, NORM_FEW = 512, NORM_UNITS = 32 };

/* What a launch of the backward kernel holds of parts of weight gradients, in dynamic shared
 * memory: at most so many floats. More columns take more launches. NORM_SUMS are for sums of its
 * warps. */
enum { NORM_HELD = 10240, NORM_SUMS = 2 * NORM_WARPS };

typedef struct norm_arguments {
    const void *x, *w, *bias; /* w, bias: or NULL */
    void *y;
    float *saved;
    int64_t units, groups, columns, x_stride, y_stride, saved_stride;
    float epsilon;
    uint32_t warps; /* of a unit: 1 or NORM_WARPS */
    bool layer, plus_one, wide;
    uint8_t reserved[5];
} norm_arguments;

typedef struct norm_backward_arguments {
    const void *x, *w, *dy; /* w: or NULL */
    const float *saved;
    void *dx;            /* or NULL */
    float *parts;        /* blocks x gradients x columns */
    int64_t first, held; /* the columns of weight gradients: held is a multiple of 8 */
    int64_t units, groups, columns, x_stride, dy_stride, dx_stride, saved_stride;
    uint32_t warps;     /* as above */
    uint32_t gradients; /* 0: of no weight, 1: of w, 2: and of the bias */
    bool layer, plus_one, wide, add;
    uint8_t reserved[4];
} norm_backward_arguments;

#endif
