/* Where the elements of a weight lie. A rank may hold a local weight of fewer rows or columns than
 * the logical one that files have: up to MODEL_BLOCKS blocks of rows x columns, side by side or one
 * below the other. So q, k and v in one matrix, cut by heads, are three blocks. All other code
 * takes elements of either weight, row by row, and asks here for the other's. The tensor axis of
 * the mesh cuts weights (model/shard.h), those held as codes between blocks of codes. A block may
 * be empty, and a local weight may be larger than its block: elements behind it stand for none of
 * the logical one. */
#ifndef MODEL_WEIGHT_BLOCKS_H
#define MODEL_WEIGHT_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/checked.h"

enum { MODEL_BLOCKS = 3 };

/* Rows rows[0] … rows[1] - 1 and columns columns[0] … columns[1] - 1 of a logical weight. */
typedef struct model_block {
    int64_t rows[2], columns[2];
} model_block;

/* What a local weight has of the logical one, in the local weight's order. */
typedef struct model_cut {
    int64_t rows, columns; /* of the logical weight */
    int32_t count;         /* of blocks; 0: the local weight is the logical one */
    model_block blocks[MODEL_BLOCKS];
    /* Local rows or columns, whichever are cut, that a block has room for; 0: as many as it has.
     * Elements behind it are zeros and stand for none of the logical weight. */
    int64_t room[MODEL_BLOCKS];
    int64_t share; /* of ranks' parts: in how many equal parts each run of them is divided */
} model_cut;

/* Elements first … first + count - 1 of a block, row by row. */
typedef struct model_span {
    model_block block;
    int64_t first, count;
} model_span;

/* Elements that follow each other in the logical weight, from `at` on, and in another order, from
 * `place` on. */
typedef struct model_stretch {
    int64_t at, place, count;
} model_stretch;

static inline int64_t model_block_elements(const model_block *block) {
    return (block->rows[1] - block->rows[0]) * (block->columns[1] - block->columns[0]);
}

static inline bool model_same_block(const model_block *a, const model_block *b) {
    return a->rows[0] == b->rows[0] && a->rows[1] == b->rows[1] && a->columns[0] == b->columns[0] &&
           a->columns[1] == b->columns[1];
}

/* The first elements of `at` … end - 1, of a logical weight with `columns` columns, that are in a
 * span; their place is counted from the span's first element. False: there are none. */
bool model_span_next(const model_span *span, int64_t columns, int64_t at, int64_t end,
                     model_stretch *out);

struct model_weight;

/* The whole of the logical weight. */
model_block model_whole(const struct model_weight *weight);
static inline int64_t model_logical_elements(const struct model_weight *weight) {
    model_block whole = model_whole(weight);
    return whole.rows[1] * whole.columns[1];
}

/* The first elements of `at` … end - 1 of the logical weight that are in the local one; their place
 * is that in the local weight. False: there are none. */
bool model_local_next(const struct model_weight *weight, int64_t at, int64_t end,
                      model_stretch *out);

/* The other way: local elements `place` … end - 1, as many as follow each other in the logical
 * weight. `at` is -1 where they stand for none. */
model_stretch model_logical_at(const struct model_weight *weight, int64_t place, int64_t end);

/* The row and column of the local weight where a block begins. */
void model_block_corner(const struct model_weight *weight, int32_t index, int64_t *row,
                        int64_t *column);

/* What local elements first … first + count - 1 have of each block: returns the number of blocks. A
 * count may be 0. */
int32_t model_local_spans(const struct model_weight *weight, int64_t first, int64_t count,
                          model_span out[MODEL_BLOCKS]);

#endif
