/* The backward kernel of attention, for the table in kernels_attention.c. */
#ifndef CPU_ATTENTION_BACKWARD_H
#define CPU_ATTENTION_BACKWARD_H

#include "device/cpu/attention/kernels_attention.h"
#include "device/cpu/simd.h"

void KERNEL_NAME(cpu_attention_backward)(const cpu_attention *a);
int64_t KERNEL_NAME(cpu_attention_backward_floats)(base_dtype dtype, int64_t keys, int64_t head_dim,
                                                   int64_t places);

#endif
