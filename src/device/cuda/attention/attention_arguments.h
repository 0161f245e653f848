/* What the kernels of attention get, for the host's side and for theirs. Plain C. */
#ifndef CUDA_ATTENTION_ARGUMENTS_H
#define CUDA_ATTENTION_ARGUMENTS_H

#include <stdint.h>

#include "device/call.h"

/* Four warps. SPAN: rows of a sequence whose least and largest segment are known in advance. */
enum { ATTENTION_THREADS = 128, ATTENTION_SPAN = 32, ATTENTION_WIDEST = 256 };

/* The first row of the first sequence; heads are adjacent columns. */
typedef struct attention_operand {
    void *data;
    int64_t stride;
} attention_operand;

typedef struct attention_arguments {
    attention_operand q, k, v, y, dy, dq, dk, dv;
    float *log_sums; /* heads x rows, log_sum_stride apart; forward: may be NULL */
    int64_t log_sum_stride;
    float *delta; /* heads x rows: rowsum(dy y) */
    int64_t rows;
    const int32_t *segments; /* NULL: a sequence is one segment */
    int64_t segment_stride;
    int32_t *ranges; /* least and largest segment of each span of each sequence */
    int32_t spans;   /* in a sequence */
    int32_t sequences, length;
    int32_t heads, group, head_dim; /* group: query heads of a kv head */
    int32_t window, ahead;          /* query i sees key j if i - j < window and j - i < ahead */
    float scale, softcap;           /* softcap c: scores s become c tanh(s / c); 0: none */
    uint32_t threshold;             /* dropout in 65536ths; 0: none */
    float keep;                     /* what is not dropped is multiplied by this */
    uint64_t random_place;          /* micro batch and op */
    /* Scores by relative position: tables of `places` rows, NULL where there is none, and the row
     * of each distance of a query from a key, from 1 - length to length - 1. */
    attention_operand position_keys, position_queries, dposition_keys, dposition_queries;
    int32_t places, buckets, most_distance, reserved;
    int32_t *rows_of;
    const device_step *step;
} attention_arguments;

/* Tiles of the 16-bit kernels for heads of up to `width` values: `rows` of the operand that a block
 * owns, and so many `columns` of the one that it goes over, at a time. Four warps have 16 rows
 * each; the widest heads' gradients would not fit into their registers, so there two warps share 16
 * rows and have half of the result's columns each. */
enum { ATTENTION_ROWS = 64, ATTENTION_BACKWARD_COLUMNS = 32 };
#define ATTENTION_COLUMNS(width) ((width) > 128 ? 32 : 64)
#define ATTENTION_BACKWARD_ROWS(width) ((width) > 128 ? 32 : 64)

/* Shared memory: the tiles, 16 bytes of dropout's numbers a thread, and of each column in two
 * buffers its segment and, backward, its statistics. */
#define ATTENTION_FORWARD_BYTES(width)                                                             \
    ((ATTENTION_ROWS + 4 * ATTENTION_COLUMNS(width)) * (width)*2 + ATTENTION_THREADS * 16 +        \
     2 * ATTENTION_COLUMNS(width) * 4)
#define ATTENTION_BACKWARD_BYTES(width)                                                            \
    ((2 * ATTENTION_BACKWARD_ROWS(width) + 4 * ATTENTION_BACKWARD_COLUMNS) * (width)*2 +           \
     ATTENTION_THREADS * 16 + 6 * ATTENTION_BACKWARD_COLUMNS * 4)

/* Of fp32: tiles have as many rows as columns, and a place more a row, so that the rows begin in
 * different banks. Shared memory holds some tiles and some squares of scores. */
#define ATTENTION_FP32_THREADS 256
#define ATTENTION_FP32_TILE(width) ((width) > 128 ? 16 : 32)
#define ATTENTION_PLAIN_BYTES(width, tile, tiles, squares)                                         \
    (((tiles) * ((width) + 1) + (squares) * ((tile) + 1)) * (tile)*4)

/* With relative positions: heads of up to WIDTH values, and behind the rest of shared memory the
 * rows of both tables for the distances in two tiles, and products with them. */
enum { ATTENTION_RELATIVE_WIDTH = 128, ATTENTION_RELATIVE_TILE = 16 };
#define ATTENTION_BAND_BYTES(width, tile)                                                          \
    ((4 * (tile) * ((width) + 1) + 2 * (tile) * (2 * (tile) + 1)) * 4)

#endif
