/* Loops for measuring the machine's limits: see device_measure. */
#ifndef CPU_LIMITS_H
#define CPU_LIMITS_H

#include <stdint.h>

typedef struct cpu_limit_kernels {
    float (*multiply_add)(int64_t rounds);
    double operations;                 /* per round */
    float (*dot_bf16)(int64_t rounds); /* NULL if the set has no such instruction */
    double operations_bf16;
    void (*triad)(float *restrict a, const float *restrict b, const float *restrict c,
                  int64_t count); /* count a multiple of 16, operands aligned to 64 bytes */
} cpu_limit_kernels;

extern const cpu_limit_kernels cpu_limit_kernels_plain, cpu_limit_kernels_avx2,
    cpu_limit_kernels_avx512, cpu_limit_kernels_avx512_bf16;

#endif
