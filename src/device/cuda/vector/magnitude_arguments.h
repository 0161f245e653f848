/* Arguments of magnitude.cu. Strides are in elements. */
#ifndef CUDA_MAGNITUDE_ARGUMENTS_H
#define CUDA_MAGNITUDE_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "device/magnitude_order.h"

enum {
    NORMS_WARPS = 4,
    NORMS_ROWS = 4,                        /* norms of a warp */
    NORMS_EACH = NORMS_WARPS * NORMS_ROWS, /* of a block */
    MAGNITUDE_ROWS = 4,                    /* of a thread */
    MAGNITUDE_COLUMNS = 32,                /* of a block that adds up columns */
    MAGNITUDE_WARPS = 16
};

/* norms[o] = |w[o,:] + scale b[o,:] a|, or with w's column o if it is transposed. `wide`: pieces of
 * rows of w and a are aligned to 16 bytes. */
typedef struct magnitude_norms_arguments {
    const void *w, *a, *b;
    float *norms;
    int64_t in, out, rank, w_stride, a_stride, b_stride;
    float scale;
    bool transposed, wide;
    uint8_t reserved[2];
} magnitude_norms_arguments;

/* to = from magnitudes / norms + bias, or += */
typedef struct magnitude_scale_arguments {
    const void *from, *magnitudes, *bias; /* bias: NULL if there is none */
    const float *norms;
    void *to;
    int64_t rows, columns, from_stride, to_stride;
    bool add;
    uint8_t reserved[7];
} magnitude_scale_arguments;

/* to = the sums over dy's rows of dy x, over norms, or += */
typedef struct magnitude_sums_arguments {
    const void *x, *dy;
    const float *norms;
    float *to;
    int64_t rows, columns, x_stride, dy_stride;
    bool add;
    uint8_t reserved[7];
} magnitude_sums_arguments;

#endif
