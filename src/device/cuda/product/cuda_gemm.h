/* Products of matrices on a CUDA device. */
#ifndef CUDA_GEMM_H
#define CUDA_GEMM_H

#include "device/cuda/product/gemm_arguments.h"
#include "device/device.h"

/* c = op(a) op(b) + bias, or c += ... All matrices are row-major; the form says how operands are
 * stored. a and b have one type, FP32, BF16 or FP16; c has that type or FP32; the bias (1 x n, or
 * no dtype) has it, too. All sums are in fp32. */
typedef enum cuda_gemm_form {
    CUDA_GEMM_NT, /* a: m x k, b: n x k */
    CUDA_GEMM_NN, /* a: m x k, b: k x n */
    CUDA_GEMM_TN  /* a: k x m, b: k x n */
} cuda_gemm_form;

typedef struct cuda_gemm {
    cuda_gemm_form form;
    device_matrix a, b, c, bias;
    bool accumulate;
    /* Rows of the matrix of which c is a part; 0: c is all. It determines the tiles. */
    int64_t whole;
    /* Terms that are summed before they are added to c, a multiple of GEMM_STEP16; 0: all. With
     * `parts` (device memory, cuda_gemm_parts_bytes() bytes), chunks are computed beside each other
     * if c alone would keep few blocks busy, to the same bits. */
    int64_t chunk;
    float *parts;
    void *workspace; /* device memory of cuda_gemm_scratch_bytes(), or NULL: no fast products */
    /* The product is multiplied by factor and, if there is one, by *factor_pointer. 0: 1. */
    float factor;
    const float *factor_pointer;
    /* Device memory, or NULL: only *count - first rows of a and c are there (of a and b, in form
     * CUDA_GEMM_TN); none if that is negative. c stays as it was where rows are missing. */
    const int32_t *count;
    int64_t first;
    const int32_t *c_rows; /* device memory, or NULL: the row of c for each row of the product */
} cuda_gemm;

int64_t cuda_gemm_parts_bytes(const cuda_gemm *gemm);

/* Of `parts` and `workspace`, which may be one memory. By shapes and types alone: what runs the
 * product in the end does not change a plan. */
int64_t cuda_gemm_scratch_bytes(const cuda_gemm *gemm);

/* Makes what a device needs for fast products of this shape. */
sifr_status cuda_gemm_prepare(device *dev, const cuda_gemm *gemm,
                              sifr_error *error) SIFR_MUST_CHECK;

sifr_status cuda_gemm_run(device *dev, const cuda_gemm *gemm, sifr_error *error) SIFR_MUST_CHECK;

#endif
