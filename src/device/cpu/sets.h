/* The table of instruction sets that kernels are compiled for (cmake/kernels.cmake). */
#ifndef CPU_SETS_H
#define CPU_SETS_H

#include <stdbool.h>

#include "device/cpu/attention/kernels_attention.h"
#include "device/cpu/delta/kernels_delta.h"
#include "device/cpu/head/kernels_loss.h"
#include "device/cpu/kernels.h"
#include "device/cpu/limits.h"
#include "device/cpu/product/kernels_matrix.h"

typedef struct cpu_set {
    const char *name;
    bool bf16; /* has products of bf16 */
    const cpu_kernels *vectors;
    const cpu_matrix_kernels *matrix;
    const cpu_attention_kernels *attention;
    const cpu_delta_kernels *delta;
    const cpu_loss_kernels *loss;
    const cpu_limit_kernels *limits;
} cpu_set;

/* The set called `name`, or the best one for NULL. NULL if no set has that name, or this processor
 * lacks it. */
const cpu_set *cpu_set_find(const char *name);

#endif
