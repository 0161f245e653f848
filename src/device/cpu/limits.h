/* Measures the machine's limits, by loops of each instruction set. */
#ifndef CPU_LIMITS_H
#define CPU_LIMITS_H

#include "device/device.h"

typedef struct cpu_limit_kernels {
    float (*multiply_add)(int64_t rounds);
    double operations;                 /* per round */
    float (*dot_bf16)(int64_t rounds); /* NULL if the set has no such instruction */
    double operations_bf16;
    void (*triad)(float *restrict a, const float *restrict b, const float *restrict c,
                  int64_t count); /* count a multiple of 16, operands aligned to 64 bytes */
} cpu_limit_kernels;

/* device_measure. */
sifr_status cpu_measure(device *dev, void *memory, int64_t bytes, device_limits *out,
                        sifr_error *error) SIFR_MUST_CHECK;

extern const cpu_limit_kernels cpu_limit_kernels_plain, cpu_limit_kernels_avx2,
    cpu_limit_kernels_avx512, cpu_limit_kernels_avx512_bf16;

#endif
