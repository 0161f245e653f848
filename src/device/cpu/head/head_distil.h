/* The part of DEVICE_HEAD_DISTIL_BACKWARD that is another head's distribution. The logits of a
 * chunk are in scratch; for each row two numbers follow from them: the logarithm of the sum of
 * exponentials of logits / temperature, and what the probability of a word that is not among the k
 * is multiplied by in its gradient. */
#ifndef CPU_HEAD_DISTIL_H
#define CPU_HEAD_DISTIL_H

#include "device/cpu/head/head_run.h"

/* The loss of place `place` of the chunk, whose cross entropy is known. */
float cpu_distil_row(head_run *run, int64_t place, float cross_entropy);

/* The gradient of the products of a block in fp32: `out` has the words of the block. label < 0: in
 * another block. */
void cpu_distil_gradient(const head_run *run, int64_t block, int64_t place, int64_t label,
                         float *out);

#endif
