# Our declarations of cuBLASLt beside cublasLt.h: constants, layout of structs, and whole functions.
# Skipped where that is not installed.
fail() { echo "$1" >&2; exit 1; }
for folder in "${CUDA_HOME:-/usr/local/cuda}" "$SOURCE/build/cuda-toolkit/nvidia/cu13" \
    "$(dirname "$(dirname "$(command -v nvcc || echo /none/none)")")"; do
    [ ! -f "$folder/include/cublasLt.h" ] || include=$folder/include
done
[ -n "${include:-}" ] || { echo "no cublasLt.h here"; exit 77; }
header=$SOURCE/src/device/cuda/cuda_lt.h

cat >layout.c <<'C'
#include <stddef.h>
#include <cublasLt.h>
#include "device/cuda/cuda_lt.h"
#define SAME(ours, theirs) _Static_assert((long)(ours) == (long)(theirs), #ours)
#define PLACE(ours, theirs)                                                                        \
    SAME(offsetof(cuda_lt_choice, ours), offsetof(cublasLtMatmulHeuristicResult_t, theirs))
SAME(CUDA_LT_OK, CUBLAS_STATUS_SUCCESS);
SAME(CUDA_LT_NOT_INITIALIZED, CUBLAS_STATUS_NOT_INITIALIZED);
SAME(CUDA_LT_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED);
SAME(CUDA_LT_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE);
SAME(CUDA_LT_ARCH_MISMATCH, CUBLAS_STATUS_ARCH_MISMATCH);
SAME(CUDA_LT_MAPPING_ERROR, CUBLAS_STATUS_MAPPING_ERROR);
SAME(CUDA_LT_EXECUTION_FAILED, CUBLAS_STATUS_EXECUTION_FAILED);
SAME(CUDA_LT_INTERNAL_ERROR, CUBLAS_STATUS_INTERNAL_ERROR);
SAME(CUDA_LT_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(CUDA_LT_LICENSE_ERROR, CUBLAS_STATUS_LICENSE_ERROR);
SAME(CUDA_LT_FP32, CUDA_R_32F);
SAME(CUDA_LT_FP16, CUDA_R_16F);
SAME(CUDA_LT_BF16, CUDA_R_16BF);
SAME(CUDA_LT_COMPUTE_FP32, CUBLAS_COMPUTE_32F);
SAME(CUDA_LT_AS_IT_IS, CUBLAS_OP_N);
SAME(CUDA_LT_TRANSPOSED, CUBLAS_OP_T);
SAME(CUDA_LT_TRANSPOSE_A, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(CUDA_LT_TRANSPOSE_B, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(CUDA_LT_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(CUDA_LT_BIAS_POINTER, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(CUDA_LT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BIAS);
SAME(CUDA_LT_WORKSPACE_BYTES, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(CUDA_LT_REDUCTION_MASK, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(CUDA_LT_ALIGNMENT_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(CUDA_LT_ALIGNMENT_B, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(CUDA_LT_ALIGNMENT_C, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(CUDA_LT_ALIGNMENT_D, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(CUDA_LT_REDUCTION_NONE, CUBLASLT_REDUCTION_SCHEME_NONE);
SAME(CUDA_LT_ALGORITHM_ID, CUBLASLT_ALGO_CONFIG_ID);
SAME(CUDA_LT_ALGORITHM_TILE, CUBLASLT_ALGO_CONFIG_TILE_ID);
SAME(CUDA_LT_ALGORITHM_REDUCTION, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
SAME(CUDA_LT_ALGORITHM_STAGES, CUBLASLT_ALGO_CONFIG_STAGES_ID);
SAME(CUDA_LT_ALGORITHM_CLUSTER, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID);
SAME(sizeof(cuda_lt_algorithm), sizeof(cublasLtMatmulAlgo_t));
SAME(sizeof(cuda_lt_choice), sizeof(cublasLtMatmulHeuristicResult_t));
PLACE(algorithm, algo);
PLACE(workspace_bytes, workspaceSize);
PLACE(status, state);
PLACE(waves, wavesCount);
C

# The structs of our own give way to NVIDIA's, so that a compiler compares whole functions.
sed '/^typedef struct cuda_lt_algorithm {/,/^}/c typedef cublasLtMatmulAlgo_t cuda_lt_algorithm;
    /^typedef struct cuda_lt_choice {/,/^}/c typedef cublasLtMatmulHeuristicResult_t cuda_lt_choice;
    s/^typedef struct cuda_lt_desc_body .*/typedef cublasLtMatmulDesc_t cuda_lt_desc;/
    s/^typedef struct cuda_lt_layout_body .*/typedef cublasLtMatrixLayout_t cuda_lt_layout;/
    s/^typedef struct cuda_lt_wish_body .*/typedef cublasLtMatmulPreference_t cuda_lt_wish;/' \
    "$header" >theirs.h
sed -n '/define CUDA_LT_FUNCTIONS/,/^typedef/p' "$header" | grep -oE 'F\(cublasLt[A-Za-z]+' |
    sed 's/F(//' >functions
[ "$(wc -l <functions)" -ge 14 ] || fail "only $(wc -l <functions) functions found in the table"
{
    echo '#include <cublasLt.h>'
    echo '#include "theirs.h"'
    echo 'void fill(cuda_lt *lt);'
    echo 'void fill(cuda_lt *lt) {'
    while read -r name; do echo "    lt->$name = $name;"; done <functions
    echo '}'
} >functions.c

check() {
    cc -std=gnu17 -fsyntax-only -Wall -Werror -isystem "$include" -I. -I"$SOURCE/include" \
        -I"$SOURCE/src" "$@"
}
check layout.c || fail "constants of cuda_lt.h and $include/cublasLt.h differ"
check functions.c || fail "functions of cuda_lt.h and $include/cublasLt.h differ"
# That it can fail: an argument of another type, a constant of another value.
sed 's/lt->cublasLtDestroy = .*/lt->cublasLtDestroy = cublasLtMatmulDescDestroy;/' functions.c >wrong.c
! check wrong.c 2>/dev/null || fail "a function of another type is not found"
sed 's/SAME(CUDA_LT_BF16, CUDA_R_16BF)/SAME(CUDA_LT_BF16, CUDA_R_16F)/' layout.c >wrong.c
! check wrong.c 2>/dev/null || fail "a constant of another value is not found"
