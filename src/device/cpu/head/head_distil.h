/* The part of DEVICE_HEAD_DISTIL_BACKWARD that learns another model's distribution. The logits of a
 * chunk are in scratch. Two numbers of each row follow from them: the logarithm of the sum of
 * exponentials of logits / temperature, and a factor. In the gradient of a word that is not among
 * the k, its probability is multiplied by that factor. */
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
