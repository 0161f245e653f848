#include "device/cuda/product/cuda_gemm.h"

#include "base/checked.h"
#include "device/cuda/cuda_launch.h"
#include "device/cuda/product/cuda_products.h"

enum {
    LARGE_TILES =
        128, /* so many large tiles keep a GPU busy; with fewer ones, small tiles do more */
    MOST_BLOCKS = 256 /* of parts that are computed at one time */
};

static int64_t tiles(int64_t elements, int64_t side) {
    return (elements + side - 1) / side;
}

static int64_t terms(const cuda_gemm *gemm) {
    return gemm->form == CUDA_GEMM_TN ? gemm->a.rows : gemm->a.columns;
}

/* Depends on the whole matrix alone, so parts of one have the same tiles. */
static bool is_large(const cuda_gemm *gemm) {
    int64_t rows = gemm->whole > 0 ? gemm->whole : gemm->c.rows;
    return gemm->a.dtype != BASE_FP32 &&
           tiles(rows, GEMM_LARGE) * tiles(gemm->c.columns, GEMM_LARGE) >= LARGE_TILES;
}

static int64_t side_of(const cuda_gemm *gemm) {
    return is_large(gemm) ? GEMM_LARGE : GEMM_SMALL;
}

static int64_t blocks_of(const cuda_gemm *gemm) {
    int64_t side = side_of(gemm);
    return tiles(gemm->c.rows, side) * tiles(gemm->c.columns, side);
}

/* Chunks that are computed beside each other. */
static int64_t parts_of(const cuda_gemm *gemm) {
    if (gemm->chunk == 0) return 1;
    int64_t chunks = (terms(gemm) + gemm->chunk - 1) / gemm->chunk;
    return base_max_i64(1, base_min_i64(chunks, MOST_BLOCKS / blocks_of(gemm)));
}

int64_t cuda_gemm_parts_bytes(const cuda_gemm *gemm) {
    int64_t parts = parts_of(gemm);
    return parts == 1 ? 0 : parts * gemm->c.rows * gemm->c.columns * (int64_t)sizeof(float);
}

int64_t cuda_gemm_scratch_bytes(const cuda_gemm *gemm) {
    int64_t fast = cuda_products_fit(gemm) ? CUDA_PRODUCTS_WORKSPACE : 0;
    return base_max_i64(cuda_gemm_parts_bytes(gemm), fast);
}

sifr_status cuda_gemm_prepare(device *dev, const cuda_gemm *gemm, sifr_error *error) {
    cuda_base *base = (cuda_base *)dev;
    return base->reserve_product ? base->reserve_product(dev, gemm, error) : SIFR_OK;
}

static cuda_kernel kernel_of(const cuda_gemm *gemm) {
    static const cuda_kernel kernels[3][5] = {
        [CUDA_GEMM_NT] = {cuda_kernel_gemm_nt_fp32, cuda_kernel_gemm_nt_bf16_small,
                          cuda_kernel_gemm_nt_bf16, cuda_kernel_gemm_nt_fp16_small,
                          cuda_kernel_gemm_nt_fp16},
        [CUDA_GEMM_NN] = {cuda_kernel_gemm_nn_fp32, cuda_kernel_gemm_nn_bf16_small,
                          cuda_kernel_gemm_nn_bf16, cuda_kernel_gemm_nn_fp16_small,
                          cuda_kernel_gemm_nn_fp16},
        [CUDA_GEMM_TN] = {cuda_kernel_gemm_tn_fp32, cuda_kernel_gemm_tn_bf16_small,
                          cuda_kernel_gemm_tn_bf16, cuda_kernel_gemm_tn_fp16_small,
                          cuda_kernel_gemm_tn_fp16},
    };
    if (gemm->a.dtype == BASE_FP32) return kernels[gemm->form][0];
    return kernels[gemm->form][(gemm->a.dtype == BASE_BF16 ? 1 : 3) + is_large(gemm)];
}

/* Whether `elements` elements at the start of each row can be moved at once. */
static bool is_wide(const device_matrix *m, int64_t elements) {
    uintptr_t bytes = (uintptr_t)(elements * base_dtype_bytes(m->dtype));
    return (uintptr_t)m->data % bytes == 0 && m->stride % elements == 0;
}

static int32_t shared_bytes(const cuda_gemm *gemm) {
    if (gemm->a.dtype == BASE_FP32)
        return GEMM_STAGES32 * 2 * GEMM_STEP32 * (GEMM_SMALL + GEMM_PAD32) * 4;
    return GEMM_STAGES16 * 2 * GEMM_STEP16 * (int32_t)side_of(gemm) * 2;
}

static gemm_arguments arguments_of(const cuda_gemm *gemm) {
    int64_t k = terms(gemm), all = base_max_i64(k, 1);
    gemm_arguments a = {.a = gemm->a.data,
                        .b = gemm->b.data,
                        .bias = gemm->bias.dtype == BASE_NONE ? NULL : gemm->bias.data,
                        .c = gemm->c.data,
                        .factor_pointer = gemm->factor_pointer,
                        .factor = gemm->factor < 0 || gemm->factor > 0 ? gemm->factor : 1.0f,
                        .count = gemm->count,
                        .first = gemm->first,
                        .c_rows = gemm->c_rows,
                        .a_stride = gemm->a.stride,
                        .b_stride = gemm->b.stride,
                        .c_stride = gemm->c.stride,
                        .m = gemm->c.rows,
                        .n = gemm->c.columns,
                        .k = k,
                        .part = all,
                        .chunk = gemm->chunk > 0 ? gemm->chunk : all,
                        .a_wide = is_wide(&gemm->a, 8),
                        .b_wide = is_wide(&gemm->b, 8),
                        .c_wide = is_wide(&gemm->c, 2),
                        .c_fp32 = gemm->c.dtype == BASE_FP32,
                        .accumulate = gemm->accumulate};
    if (gemm->count != NULL) a.limit = gemm->form == CUDA_GEMM_TN ? GEMM_LIMIT_K : GEMM_LIMIT_M;
    return a;
}

static sifr_status launch(device *dev, const cuda_gemm *gemm, const gemm_arguments *arguments,
                          int64_t parts, sifr_error *error) {
    cuda_launch launch = {.kernel = kernel_of(gemm),
                          .blocks = {blocks_of(gemm), parts, 1},
                          .threads = gemm->a.dtype == BASE_FP32 ? GEMM_THREADS32 : GEMM_THREADS16,
                          .shared_bytes = (uint32_t)shared_bytes(gemm),
                          .arguments = arguments};
    return cuda_launch_kernel(dev, &launch, error);
}

static sifr_status add_parts(device *dev, const cuda_gemm *gemm, int64_t parts, bool accumulate,
                             sifr_error *error) {
    gemm_parts_arguments arguments = {.parts = gemm->parts,
                                      .c = gemm->c.data,
                                      .rows = gemm->c.rows,
                                      .columns = gemm->c.columns,
                                      .c_stride = gemm->c.stride,
                                      .count = parts,
                                      .accumulate = accumulate};
    int64_t size = gemm->c.rows * gemm->c.columns;
    cuda_launch launch = {.kernel = cuda_kernel_gemm_parts,
                          .blocks = {tiles(size, GEMM_PARTS_THREADS), 1, 1},
                          .threads = GEMM_PARTS_THREADS,
                          .arguments = &arguments};
    return cuda_launch_kernel(dev, &launch, error);
}

/* A few chunks at a time into scratch, then into c. */
static sifr_status run_parts(device *dev, const cuda_gemm *gemm, int64_t most, sifr_error *error) {
    int64_t element = base_dtype_bytes(gemm->a.dtype), k = terms(gemm);
    for (int64_t first = 0; first < k; first += most * gemm->chunk) {
        gemm_arguments a = arguments_of(gemm);
        a.a = (const char *)a.a + first * a.a_stride * element;
        a.b = (const char *)a.b + first * a.b_stride * element;
        a.k = base_min_i64(k - first, most * gemm->chunk);
        int64_t parts = (a.k + gemm->chunk - 1) / gemm->chunk;
        a.part = gemm->chunk;
        a.c = gemm->parts;
        a.c_stride = gemm->c.columns;
        a.c_part = gemm->c.rows * gemm->c.columns;
        a.c_wide = gemm->c.columns % 2 == 0;
        a.accumulate = false;
        BASE_TRY(launch(dev, gemm, &a, parts, error));
        BASE_TRY(add_parts(dev, gemm, parts, first > 0 || gemm->accumulate, error));
    }
    return SIFR_OK;
}

static sifr_status run_own(device *dev, const cuda_gemm *gemm, sifr_error *error) {
    int64_t parts = gemm->parts != NULL ? parts_of(gemm) : 1;
    if (parts > 1) return run_parts(dev, gemm, parts, error);
    gemm_arguments arguments = arguments_of(gemm);
    return launch(dev, gemm, &arguments, 1, error);
}

sifr_status cuda_gemm_run(device *dev, const cuda_gemm *gemm, sifr_error *error) {
    cuda_base *base = (cuda_base *)dev;
    bool done = false;
    if (base->multiply) BASE_TRY(base->multiply(dev, gemm, &done, error));
    if (gemm->a.dtype != BASE_FP32) ++*(done ? &base->library_products : &base->own_products);
    return done ? SIFR_OK : run_own(dev, gemm, error);
}
