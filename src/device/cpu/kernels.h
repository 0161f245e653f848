/* Kernels on ranges of rows or elements, single-threaded, compiled once for each instruction set
 * (cmake/kernels.cmake). The files kernels_*.c fill in one table a set. */
#ifndef CPU_KERNELS_H
#define CPU_KERNELS_H

#include "base/exact_sum.h"
#include "device/call.h"

/* Part of a call: rows [first, first + count), or elements for flat kernels. */
typedef struct cpu_part {
    const device_call *call;
    int64_t first, count;
    float
        *sums; /* backward of norms: FP32 weights x 2, this part's sums for dw0, dw1; of xielu 2 */
} cpu_part;

typedef struct cpu_kernels {
    void (*norm)(const cpu_part *part);
    void (*norm_backward)(const cpu_part *part);
    void (*rope)(const cpu_part *part);
    void (*split_qkv)(const cpu_part *part);
    void (*join)(const cpu_part *part);
    void (*unfold)(const cpu_part *part);
    void (*short_conv)(const cpu_part *part); /* and backward, dx0 */
    void (*short_conv_cached)(const cpu_part *part);
    void (*short_conv_state)(const cpu_part *part);   /* first and count are columns */
    void (*short_conv_weights)(const cpu_part *part); /* backward, dw; likewise */
    void (*xielu)(const cpu_part *part);              /* and backward */
    void (*blocks8)(const cpu_part *part);
    void (*blocks4)(const cpu_part *part);
    void (*power)(const cpu_part *part);
    void (*rows)(const cpu_part *part);
    void (*elementwise)(const cpu_part *part);
    void (*updates[DEVICE_UPDATES])(const cpu_part *part); /* by DEVICE_UPDATE_NUMBER */
    /* Elements [first, first + count) of a row; at most 2^20 of them. */
    void (*exact_squares)(const device_matrix *x, int64_t first, int64_t count,
                          base_exact_sum *sum);
    /* Of bands of rows of Adafactor's matrix (vector/adafactor.h). */
    void (*adafactor_sums)(const cpu_part *part);
    void (*adafactor_squares)(const cpu_part *part);
    void (*embedding)(const cpu_part *part);
    void (*embedding_backward)(const cpu_part *part); /* first and count are columns */
} cpu_kernels;

/* The result of an element-wise call that tells its shape. */
static inline const device_matrix *cpu_elementwise_shape(const device_call *call) {
    if (call->y.dtype != BASE_NONE) return &call->y;
    return call->dx[0].dtype != BASE_NONE ? &call->dx[0] : &call->dx[1];
}

extern const cpu_kernels cpu_kernels_plain, cpu_kernels_avx2, cpu_kernels_avx512,
    cpu_kernels_avx512_bf16;

#endif
