/* Arguments of the rotary embedding, for both sides. Strides are in elements. */
#ifndef CUDA_ROPE_ARGUMENTS_H
#define CUDA_ROPE_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

enum { ROPE_THREADS = 256 };

typedef struct rope_arguments {
    const void *from;
    const int32_t *positions;
    const float *table; /* positions x (half cosines, then half sines) */
    void *to;
    int64_t rows, from_stride, to_stride, positions_stride, table_stride;
    uint32_t heads, head_dim, half; /* the first 2 half elements of a head rotate */
    uint32_t rotated_pieces;        /* of eight pairs */
    uint32_t head_pieces;           /* these, and those of eight elements that stay */
    bool interleaved, wide, back, add;
} rope_arguments;

#endif
