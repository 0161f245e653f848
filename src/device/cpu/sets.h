/* The instruction sets that kernels are compiled for (cmake/kernels.cmake): what each of them has,
 * in one table. */
#ifndef CPU_SETS_H
#define CPU_SETS_H

#include <stdbool.h>

#include "device/cpu/attention/kernels_attention.h"
#include "device/cpu/head/kernels_loss.h"
#include "device/cpu/kernels.h"
#include "device/cpu/limits.h"
#include "device/cpu/product/kernels_matrix.h"

typedef struct cpu_set {
    const char *name;
    bool bf16; /* it has products of bf16 */
    const cpu_kernels *vectors;
    const cpu_matrix_kernels *matrix;
    const cpu_attention_kernels *attention;
    const cpu_loss_kernels *loss;
    const cpu_limit_kernels *limits;
} cpu_set;

/* The set of that name, or the best for NULL; NULL where this processor lacks it, or nothing has
 * that name. */
const cpu_set *cpu_set_find(const char *name);

#endif
