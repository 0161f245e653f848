/* Arguments of the kernels that move rows, for both sides. Strides are in elements, but for those
 * of gather_arguments, which are in units. */
#ifndef CUDA_MOVES_ARGUMENTS_H
#define CUDA_MOVES_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

enum { MOVES_THREADS = 256 };

/* to[r,:] = table[first + ids[r],:], or table[r,:] without ids. A unit has 2, 4 or 16 bytes: that
 * is the kernel's choice. */
typedef struct gather_arguments {
    const void *table;
    const int32_t *ids;
    void *to;
    int64_t rows, ids_stride, table_stride, to_stride;
    uint32_t units; /* of a row */
    int32_t first;
} gather_arguments;

/* to = from, or to += from */
typedef struct row_gradient_arguments {
    const void *from;
    float *to;
    int64_t rows, columns, from_stride, to_stride;
    uint32_t pieces; /* of a row */
    bool wide, add;
    uint8_t reserved[2];
} row_gradient_arguments;

/* Columns of runs x width elements: run k of the grouped side is run k % groups * parts + k /
 * groups of the other; back: from the grouped side to the other. */
typedef struct split_qkv_arguments {
    const void *from;
    void *to;
    int64_t rows, width, from_stride, to_stride;
    uint32_t groups, parts;
    uint32_t run_pieces; /* of a run */
    bool wide, back, add;
    uint8_t reserved;
} split_qkv_arguments;

typedef struct unfold_arguments {
    const void *from;
    const int32_t *segments; /* or NULL */
    void *to;
    int64_t columns; /* of the narrow side */
    int64_t length, from_stride, to_stride, segments_stride;
    int32_t size;
    bool add;
    uint8_t reserved[3];
} unfold_arguments;

#endif
