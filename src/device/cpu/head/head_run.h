/* What the files of the head over words share: the plan of a call, and the run of it. Private to
 * them. */
#ifndef CPU_HEAD_RUN_H
#define CPU_HEAD_RUN_H

#include <stdatomic.h>

#include "base/checked.h"
#include "device/cpu/head/kernels_loss.h"
#include "device/cpu/product/kernels_matrix.h"
#include "device/cpu/product/product_pieces.h"

enum { HEAD_MOST_WORDS = 1024, HEAD_ROW_TILE = 64 }; /* words in a block, at most; rows of a task */

typedef struct head_plan {
    int64_t rows, width, words, chunk, block, blocks;
    base_dtype type;    /* type of the products */
    device_words split; /* all > 0: `words` of them are here, from `first` on */
    bool widen, backward;
    bool weighted; /* rows have weights */
    bool shaped;   /* logits are scaled or capped */
    cpu_logits_shape shape;
    bool few;                /* few rows, one tile: w is read a block at a time and not packed */
    cpu_row_tiles logits[2]; /* [a whole block, the last one] */
    cpu_pieces weight_pieces[2], input_pieces[2];
    cpu_row_tiles weights[2][2], input[2][2]; /* [..][set, add], without pieces */
    int64_t columns;    /* of x2, numbers of another head's distribution; else 0 */
    int64_t at_weights; /* of a preference: a factor for each row's gradient */
    int64_t at_rest;    /* of a distribution: see head_distil.h, two numbers a row */
    bool own;           /* a loss of the caller's (head_own.h): logits are rows x words */
    int64_t at_gradient, at_labels;
    int64_t at_indices, at_x, at_w, at_packed_x, at_packed_w, at_logits, at_statistics, at_sums,
        at_dx;
    int64_t at_threads, thread_bytes, transposed_bytes, product_bytes; /* of scratch, per thread */
} head_plan;

typedef struct head_run {
    const head_plan *plan;
    const device_call *call;
    const device_matrix *statistics; /* of all words, by row; NULL: in scratch, by place */
    const cpu_loss_kernels *kernels;
    const cpu_matrix_kernels *matrix;
    char *scratch;
    const void *w;
    int64_t w_stride;
    int64_t first, labelled; /* of the current chunk, in the list of labelled rows */
    bool first_chunk;
    const float *weights; /* of each row's gradient; NULL: 1 */
    bool losses_only;     /* a backward call's losses, without gradients */
    bool has_logits;      /* of the only chunk they are in scratch already */
    atomic_bool failed;
} head_run;

static inline int64_t head_block_words(const head_plan *plan, int64_t block) {
    return base_min_i64(plan->block, plan->words - block * plan->block);
}

static inline int32_t *head_indices(const head_run *run) {
    return (int32_t *)(run->scratch + run->plan->at_indices);
}

static inline float *head_block_logits(const head_run *run, int64_t block) {
    return (float *)(run->scratch + run->plan->at_logits) +
           block * run->plan->block * run->plan->chunk;
}

/* Words of the vocabulary. */
static inline int64_t head_all_words(const head_plan *plan) {
    return plan->split.all > 0 ? plan->split.all : plan->words;
}

static inline int32_t head_label(const head_run *run, int64_t place) {
    const device_matrix *labels = &run->call->x[1];
    int64_t row = head_indices(run)[run->first + place];
    return ((const int32_t *)labels->data)[row * labels->stride];
}

/* The place of the label among `words` words, from `from` on of those that are here; -1: it is
 * elsewhere. */
static inline int64_t head_label_in(const head_run *run, int64_t place, int64_t from,
                                    int64_t words) {
    int64_t label = head_label(run, place) - run->plan->split.first - from;
    return label < 0 || label >= words ? -1 : label;
}

/* The scale of the gradient of place `place` of the chunk. */
static inline float head_scale(const head_run *run, int64_t place) {
    float scale = run->call->step->gradient_scale;
    return run->weights ? scale * run->weights[head_indices(run)[run->first + place]] : scale;
}

#endif
