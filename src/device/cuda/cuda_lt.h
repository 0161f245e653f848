/* The functions of cuBLASLt, NVIDIA's library of matrix products, called through a table: the
 * library fills it where it is found at run time, and a test fills it with functions of its own.
 *
 * Types and constants are those of <cublasLt.h> under names of our own.
 * tests/device/test_lt_header.sh compares both where <cublasLt.h> is at hand.
 */
#ifndef CUDA_LT_H
#define CUDA_LT_H

#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "device/cuda/cuda_driver.h"

typedef unsigned cuda_lt_status; /* cublasStatus_t */
typedef struct cublasLtContext *cuda_lt_handle;
typedef struct cuda_lt_desc_body *cuda_lt_desc;     /* cublasLtMatmulDesc_t */
typedef struct cuda_lt_layout_body *cuda_lt_layout; /* cublasLtMatrixLayout_t */
typedef struct cuda_lt_wish_body *cuda_lt_wish;     /* cublasLtMatmulPreference_t */

typedef struct cuda_lt_algorithm {
    uint64_t data[8];
} cuda_lt_algorithm; /* cublasLtMatmulAlgo_t */

typedef struct cuda_lt_choice {
    cuda_lt_algorithm algorithm;
    size_t workspace_bytes;
    cuda_lt_status status;
    float waves;
    int reserved[4];
} cuda_lt_choice; /* cublasLtMatmulHeuristicResult_t */

/* CUBLAS_STATUS_... */
enum {
    CUDA_LT_OK = 0,
    CUDA_LT_NOT_INITIALIZED = 1,
    CUDA_LT_ALLOC_FAILED = 3,
    CUDA_LT_INVALID_VALUE = 7,
    CUDA_LT_ARCH_MISMATCH = 8,
    CUDA_LT_MAPPING_ERROR = 11,
    CUDA_LT_EXECUTION_FAILED = 13,
    CUDA_LT_INTERNAL_ERROR = 14,
    CUDA_LT_NOT_SUPPORTED = 15,
    CUDA_LT_LICENSE_ERROR = 16
};

/* Types of elements (CUDA_R_...) and of sums (CUBLAS_COMPUTE_...), and how an operand is read
 * (CUBLAS_OP_...). */
enum {
    CUDA_LT_FP32 = 0,
    CUDA_LT_FP16 = 2,
    CUDA_LT_BF16 = 14,
    CUDA_LT_COMPUTE_FP32 = 68,
    CUDA_LT_AS_IT_IS = 0,
    CUDA_LT_TRANSPOSED = 1
};

/* Attributes, with their prefix in <cublasLt.h>. */
enum {
    CUDA_LT_TRANSPOSE_A = 3, /* CUBLASLT_MATMUL_DESC_ */
    CUDA_LT_TRANSPOSE_B = 4,
    CUDA_LT_EPILOGUE = 7,
    CUDA_LT_BIAS_POINTER = 8,
    CUDA_LT_EPILOGUE_BIAS = 4,   /* CUBLASLT_EPILOGUE_ */
    CUDA_LT_WORKSPACE_BYTES = 1, /* CUBLASLT_MATMUL_PREF_ */
    CUDA_LT_REDUCTION_MASK = 3,
    CUDA_LT_ALIGNMENT_A = 5,
    CUDA_LT_ALIGNMENT_B = 6,
    CUDA_LT_ALIGNMENT_C = 7,
    CUDA_LT_ALIGNMENT_D = 8,
    CUDA_LT_REDUCTION_NONE = 0, /* CUBLASLT_REDUCTION_SCHEME_ */
    CUDA_LT_ALGORITHM_ID = 0,   /* CUBLASLT_ALGO_CONFIG_ */
    CUDA_LT_ALGORITHM_TILE = 1,
    CUDA_LT_ALGORITHM_REDUCTION = 3,
    CUDA_LT_ALGORITHM_STAGES = 6,
    CUDA_LT_ALGORITHM_CLUSTER = 8
};

/* F(name, arguments), all of which return a cuda_lt_status. */
#define CUDA_LT_FUNCTIONS(F)                                                                       \
    F(cublasLtCreate, (cuda_lt_handle * handle))                                                   \
    F(cublasLtDestroy, (cuda_lt_handle handle))                                                    \
    F(cublasLtMatmulDescCreate, (cuda_lt_desc * desc, unsigned compute, unsigned scale))           \
    F(cublasLtMatmulDescSetAttribute,                                                              \
      (cuda_lt_desc desc, unsigned attribute, const void *value, size_t bytes))                    \
    F(cublasLtMatmulDescDestroy, (cuda_lt_desc desc))                                              \
    F(cublasLtMatrixLayoutCreate,                                                                  \
      (cuda_lt_layout * layout, unsigned type, uint64_t rows, uint64_t columns, int64_t stride))   \
    F(cublasLtMatrixLayoutDestroy, (cuda_lt_layout layout))                                        \
    F(cublasLtMatmulPreferenceCreate, (cuda_lt_wish * wish))                                       \
    F(cublasLtMatmulPreferenceSetAttribute,                                                        \
      (cuda_lt_wish wish, unsigned attribute, const void *value, size_t bytes))                    \
    F(cublasLtMatmulPreferenceDestroy, (cuda_lt_wish wish))                                        \
    F(cublasLtMatmulAlgoGetHeuristic,                                                              \
      (cuda_lt_handle handle, cuda_lt_desc desc, cuda_lt_layout a, cuda_lt_layout b,               \
       cuda_lt_layout c, cuda_lt_layout d, cuda_lt_wish wish, int wanted, cuda_lt_choice *choices, \
       int *count))                                                                                \
    F(cublasLtMatmulAlgoCheck, (cuda_lt_handle handle, cuda_lt_desc desc, cuda_lt_layout a,        \
                                cuda_lt_layout b, cuda_lt_layout c, cuda_lt_layout d,              \
                                const cuda_lt_algorithm *algorithm, cuda_lt_choice *choice))       \
    F(cublasLtMatmulAlgoConfigGetAttribute,                                                        \
      (const cuda_lt_algorithm *algorithm, unsigned attribute, void *value, size_t bytes,          \
       size_t *written))                                                                           \
    F(cublasLtMatmul,                                                                              \
      (cuda_lt_handle handle, cuda_lt_desc desc, const void *alpha, const void *a,                 \
       cuda_lt_layout layout_a, const void *b, cuda_lt_layout layout_b, const void *beta,          \
       const void *c, cuda_lt_layout layout_c, void *d, cuda_lt_layout layout_d,                   \
       const cuda_lt_algorithm *algorithm, void *workspace, size_t bytes, cuda_stream stream))

typedef struct cuda_lt {
#define CUDA_LT_MEMBER(name, arguments) cuda_lt_status(*name) arguments;
    CUDA_LT_FUNCTIONS(CUDA_LT_MEMBER)
#undef CUDA_LT_MEMBER
    int major, minor, patch; /* the library's version */
} cuda_lt;

/* Loads the library where cuda_library_open finds it, and fills the table. `driver` as there.
 * SIFR_FAILED says what is missing. The library stays loaded until the process ends. */
sifr_status cuda_lt_open(int driver, cuda_lt *lt, sifr_error *error) SIFR_MUST_CHECK;

/* "CUBLAS_STATUS_..." */
const char *cuda_lt_status_name(cuda_lt_status status);

/* The status of a library's result. The message is "WHAT: NAME". CUDA_LT_ALLOC_FAILED is
 * SIFR_NO_MEMORY, others are SIFR_FAILED. */
sifr_status cuda_lt_check(cuda_lt_status status, sifr_error *error, const char *what, ...)
    SIFR_PRINTF(3, 4) SIFR_MUST_CHECK;

/* Calls a function of the table, and returns its status, with the function's name, if it fails. */
#define CUDA_LT_TRY(lt, error, name, ...)                                                          \
    BASE_TRY(cuda_lt_check((lt)->name(__VA_ARGS__), (error), "%s", #name))

#endif
