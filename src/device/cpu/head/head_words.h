/* Statistics of blocks of words, and what a row's come to. They are of all words or, on a tensor
 * rank, of those that it has, to be added up over the ranks (DEVICE_HEAD_STATISTICS). */
#ifndef CPU_HEAD_WORDS_H
#define CPU_HEAD_WORDS_H

#include "device/cpu/head/head_run.h"

/* Where the call has the statistics of a split vocabulary; NULL: it is not split. */
const device_matrix *cpu_head_split_statistics(const device_call *call);

/* Whether they are there already, those of all ranks. */
static inline bool head_has_statistics(const head_run *run) {
    return run->call->x[3].dtype != BASE_NONE;
}

/* The largest logit and the sum of exponentials of a block, by its number in the vocabulary. */
static inline float *head_statistics(const head_run *run, int64_t block, int64_t place) {
    const device_matrix *m = run->statistics;
    if (m) return (float *)m->data + head_indices(run)[run->first + place] * m->stride + 2 * block;
    return (float *)(run->scratch + run->plan->at_statistics) +
           2 * (block * run->plan->chunk + place);
}

/* Combines the blocks of a task's rows: the logarithm of the sum of exponentials, and the loss. Of
 * DEVICE_HEAD_STATISTICS: the logits of the labels that are here. */
void cpu_head_finish(void *context, int64_t task, int thread);

/* Of words that are not here: y of DEVICE_HEAD_STATISTICS before the first chunk, and rows of
 * gradients without a word. */
void cpu_head_clear_unused(const head_run *run);

/* A chunk's dx on a rank without words. */
void cpu_head_clear_dx(const head_run *run);

#endif
