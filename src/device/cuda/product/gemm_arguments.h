/* Arguments of the kernels of gemm16.cu, gemm32.cu and gemm_parts.cu. */
#ifndef CUDA_GEMM_ARGUMENTS_H
#define CUDA_GEMM_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    GEMM_LARGE = 128,  /* rows and columns of a large tile of c, in 16 bits */
    GEMM_SMALL = 64,   /* of a small one, and of those in fp32 */
    GEMM_STEP16 = 32,  /* of k */
    GEMM_STEP32 = 16,  /* of k, in fp32 */
    GEMM_PAD32 = 4,    /* elements that spread a column over the banks, in fp32 */
    GEMM_STAGES16 = 3, /* steps in shared memory at once */
    GEMM_STAGES32 = 2,
    GEMM_THREADS16 = 128,
    GEMM_THREADS32 = 64,
    GEMM_PARTS_THREADS = 256
};

/* What `count` limits. */
typedef enum gemm_limit { GEMM_LIMIT_NONE, GEMM_LIMIT_M, GEMM_LIMIT_K } gemm_limit;

/* c = factor op(a) op(b) + bias, or c += ..., with c m x n and k terms in a sum; op is a matter of
 * the kernel. Strides are in elements.
 *
 * k is cut into parts, and parts into chunks; both are multiples of a step. Block y computes part y
 * into c + y c_part, and adds one chunk after the other to c. */
typedef struct gemm_arguments {
    const void *a, *b;
    const void *bias; /* of n elements of the operands' type, or NULL */
    void *c;
    const float *factor_pointer; /* device memory; NULL: 1 */
    /* Device memory: rows that are there, of which a and c (or a and b) begin with row `first`.
     * NULL: all. */
    const int32_t *count;
    int64_t first;
    const int32_t *c_rows; /* row r of the product goes to row c_rows[r] of c; NULL: r */
    int64_t a_stride, b_stride, c_stride, c_part;
    int64_t m, n, k, part, chunk;
    float factor;        /* is multiplied with *factor_pointer */
    int32_t limit;       /* gemm_limit */
    bool a_wide, b_wide; /* 16-byte loads are possible */
    bool c_wide;         /* pairs of elements can be written at once */
    bool c_fp32;         /* else the operands' type */
    bool accumulate;
    uint8_t reserved[3];
} gemm_arguments;

/* c += or = the parts, in order: one after the other. rows x columns without gaps in a part. */
typedef struct gemm_parts_arguments {
    const float *parts;
    float *c;
    int64_t rows, columns, c_stride, count;
    bool accumulate;
    uint8_t reserved[7];
} gemm_parts_arguments;

#endif
