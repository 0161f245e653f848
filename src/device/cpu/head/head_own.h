/* The part of DEVICE_OWN_LOSS that calls the caller's function. The logits of a chunk are in
 * scratch as a matrix, rows x words, and so is the gradient behind them. Once the function has
 * filled it, blocks of the gradient take the place of the logits, in the type of the products. */
#ifndef CPU_HEAD_OWN_H
#define CPU_HEAD_OWN_H

#include "device/cpu/head/head_run.h"

/* Rows of a chunk, where `rows` are the most: so many that logits and gradient keep within memory,
 * in whole tiles where there are several. */
int64_t cpu_own_rows(const device_call *call, int64_t rows);

/* The losses of the chunk and, in a backward call, the gradient of its products. */
void cpu_own_loss(device *dev, head_run *run);

/* A row's gradient of the words of a block. */
static inline const float *cpu_own_gradient(const head_run *run, int64_t block, int64_t place) {
    const head_plan *plan = run->plan;
    const float *gradient = (const float *)(const void *)(run->scratch + plan->at_gradient);
    return gradient + place * plan->words + block * plan->block;
}

#endif
