/* Arguments of the kernels for the gradient of a table of words, for both sides. */
#ifndef CUDA_EMBEDDING_ARGUMENTS_H
#define CUDA_EMBEDDING_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

/* Tokens are sorted by their words, ORDER_BITS of these at a time. A block has as many tokens as
 * there are values of a digit, and each thread has one of these. */
enum { ORDER_BITS = 9, ORDER_TILE = 1 << ORDER_BITS };

/* The columns of words are EMBEDDING_THREADS x 8 a block. */
enum { EMBEDDING_THREADS = 128 };

typedef struct order_arguments {
    const int32_t *ids;
    const int32_t *before; /* the tokens in the order so far, or NULL: as they come */
    int32_t *order;
    int32_t *counts; /* tiles x ORDER_TILE: of a digit in a tile, then where its tokens begin */
    int64_t rows, ids_stride;
    int32_t tiles, first;
    uint32_t shift;
    uint32_t reserved;
} order_arguments;

typedef struct table_sums_arguments {
    const int32_t *ids, *order;
    const void *dy;
    float *dw;
    int64_t rows, columns, ids_stride, dy_stride, dw_stride;
    int32_t first, padding;
    bool padded, wide, add;
    uint8_t reserved[5];
} table_sums_arguments;

#endif
