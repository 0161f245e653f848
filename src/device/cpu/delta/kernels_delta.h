/* The gated delta rule of a key head of a sequence, with its value heads, on one thread; compiled
 * for each instruction set. */
#ifndef CPU_KERNELS_DELTA_H
#define CPU_KERNELS_DELTA_H

#include "device/call.h"

typedef struct cpu_delta {
    const device_call *call;
    int64_t sequence, head; /* head: a key head; of `step` a value head */
    float *scratch;
    double *sums; /* backward: of each value head, for dw0 and dw1 */
} cpu_delta;

typedef struct cpu_delta_kernels {
    void (*forward)(const cpu_delta *d);
    void (*backward)(const cpu_delta *d);
    void (*step)(const cpu_delta *d);           /* DEVICE_DELTA_CACHED */
    int64_t (*floats)(const device_call *call); /* of scratch, a multiple of 16 */
} cpu_delta_kernels;

extern const cpu_delta_kernels cpu_delta_kernels_plain, cpu_delta_kernels_avx2,
    cpu_delta_kernels_avx512, cpu_delta_kernels_avx512_bf16;

#endif
