#include "device/cuda/product/cuda_products.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/heap.h"

enum {
    BUCKETS = 256,
    WORKSPACE_ALIGNMENT = 256, /* cuBLASLt's demand */
    /* What device.h promises for an operand, and what a slice of columns must have. The planner
     * may align further in one plan than in another, so no more is relied on: the algorithm would
     * change with the plan. */
    MATRIX_ALIGNMENT = 64,
    SLICE_ALIGNMENT = 16
};

/* All of one type, so that keys are compared as bytes. */
typedef struct product_key {
    int64_t form, type, c_type, bias;
    int64_t m, n, k, a_stride, b_stride, c_stride;
    int64_t whole; /* rows of the matrix that c is a part of; 0: none */
    int64_t a_sliced, b_sliced, c_sliced;
} product_key;

typedef enum product_state { PRODUCT_NEW, PRODUCT_CHOSEN, PRODUCT_NONE } product_state;

typedef struct product {
    struct product *next; /* in its bucket */
    struct product *whole;
    product_key key;
    cuda_lt_desc desc;
    cuda_lt_layout a, b, c; /* a: cuBLASLt's first operand, which is the gemm's b */
    product_state state;
    cuda_lt_algorithm algorithm;
} product;

struct cuda_products {
    cuda_lt lt;
    cuda_lt_handle handle;
    cuda_lt_wish wish;
    pthread_mutex_t lock; /* of all that follows */
    product *buckets[BUCKETS];
    char lack[160];
};

static bool is_sliced(const device_matrix *m) {
    return m->stride > m->columns;
}

static int64_t alignment_of(int64_t sliced) {
    return sliced ? SLICE_ALIGNMENT : MATRIX_ALIGNMENT;
}

static int64_t terms(const cuda_gemm *gemm) {
    return gemm->form == CUDA_GEMM_TN ? gemm->a.rows : gemm->a.columns;
}

static bool has_stride(const device_matrix *m) {
    return m->stride * base_dtype_bytes(m->dtype) % SLICE_ALIGNMENT == 0;
}

/* What only the own kernels have: counts and factors in device memory, indexed rows, chunks of a
 * sum over columns. */
static bool is_plain(const cuda_gemm *gemm) {
    bool factor = gemm->factor_pointer != NULL || gemm->factor < 0 ||
                  (gemm->factor > 0 && (gemm->factor < 1 || gemm->factor > 1));
    return !factor && gemm->count == NULL && gemm->c_rows == NULL &&
           (gemm->chunk == 0 || gemm->form == CUDA_GEMM_TN);
}

bool cuda_products_fit(const cuda_gemm *gemm) {
    base_dtype type = gemm->a.dtype;
    bool biased = gemm->bias.dtype != BASE_NONE;
    if (type != BASE_BF16 && type != BASE_FP16) return false;
    if (gemm->c.dtype != type && (gemm->c.dtype != BASE_FP32 || biased)) return false;
    return is_plain(gemm) && gemm->c.rows > 0 && gemm->c.columns > 0 && terms(gemm) > 0 &&
           has_stride(&gemm->a) && has_stride(&gemm->b) && has_stride(&gemm->c);
}

static product_key key_of(const cuda_gemm *gemm) {
    bool part = gemm->whole > 0 && gemm->whole != gemm->c.rows;
    return (product_key){.form = gemm->form,
                         .type = gemm->a.dtype,
                         .c_type = gemm->c.dtype,
                         .bias = gemm->bias.dtype != BASE_NONE,
                         .m = gemm->c.rows,
                         .n = gemm->c.columns,
                         .k = terms(gemm),
                         .a_stride = gemm->a.stride,
                         .b_stride = gemm->b.stride,
                         .c_stride = gemm->c.stride,
                         .whole = part ? gemm->whole : 0,
                         .a_sliced = is_sliced(&gemm->a),
                         .b_sliced = is_sliced(&gemm->b),
                         .c_sliced = is_sliced(&gemm->c)};
}

static product **bucket_of(cuda_products *products, const product_key *key) {
    return &products->buckets[base_hash(key, sizeof *key) % BUCKETS];
}

static product *find(cuda_products *products, const product_key *key) {
    product *p = *bucket_of(products, key);
    while (p && memcmp(&p->key, key, sizeof *key) != 0) p = p->next;
    return p;
}

static void free_product(const cuda_lt *lt, product *p) {
    if (p->desc) lt->cublasLtMatmulDescDestroy(p->desc);
    if (p->a) lt->cublasLtMatrixLayoutDestroy(p->a);
    if (p->b) lt->cublasLtMatrixLayoutDestroy(p->b);
    if (p->c) lt->cublasLtMatrixLayoutDestroy(p->c);
    free(p);
}

static unsigned type_of(int64_t dtype) {
    if (dtype == BASE_FP32) return CUDA_LT_FP32;
    return dtype == BASE_BF16 ? CUDA_LT_BF16 : CUDA_LT_FP16;
}

/* The gemm's operands as they lie in memory: a row is a column of cuBLASLt's. */
static sifr_status make_layouts(const cuda_lt *lt, product *p, sifr_error *error) {
    const product_key *key = &p->key;
    bool a_by_k = key->form == CUDA_GEMM_TN, b_by_k = key->form != CUDA_GEMM_NT;
    unsigned type = type_of(key->type);
    CUDA_LT_TRY(lt, error, cublasLtMatrixLayoutCreate, &p->a, type,
                (uint64_t)(b_by_k ? key->n : key->k), (uint64_t)(b_by_k ? key->k : key->n),
                key->b_stride);
    CUDA_LT_TRY(lt, error, cublasLtMatrixLayoutCreate, &p->b, type,
                (uint64_t)(a_by_k ? key->m : key->k), (uint64_t)(a_by_k ? key->k : key->m),
                key->a_stride);
    CUDA_LT_TRY(lt, error, cublasLtMatrixLayoutCreate, &p->c, type_of(key->c_type),
                (uint64_t)key->n, (uint64_t)key->m, key->c_stride);
    return SIFR_OK;
}

static sifr_status make_desc(const cuda_lt *lt, product *p, sifr_error *error) {
    int32_t a = p->key.form == CUDA_GEMM_NT ? CUDA_LT_TRANSPOSED : CUDA_LT_AS_IT_IS;
    int32_t b = p->key.form == CUDA_GEMM_TN ? CUDA_LT_TRANSPOSED : CUDA_LT_AS_IT_IS;
    uint32_t epilogue = CUDA_LT_EPILOGUE_BIAS;
    CUDA_LT_TRY(lt, error, cublasLtMatmulDescCreate, &p->desc, CUDA_LT_COMPUTE_FP32, CUDA_LT_FP32);
    CUDA_LT_TRY(lt, error, cublasLtMatmulDescSetAttribute, p->desc, CUDA_LT_TRANSPOSE_A, &a,
                sizeof a);
    CUDA_LT_TRY(lt, error, cublasLtMatmulDescSetAttribute, p->desc, CUDA_LT_TRANSPOSE_B, &b,
                sizeof b);
    if (p->key.bias)
        CUDA_LT_TRY(lt, error, cublasLtMatmulDescSetAttribute, p->desc, CUDA_LT_EPILOGUE, &epilogue,
                    sizeof epilogue);
    return SIFR_OK;
}

static sifr_status make(cuda_products *products, const product_key *key, product **out,
                        sifr_error *error) {
    product *p = find(products, key);
    if (!p) {
        BASE_TRY(base_alloc(1, sizeof *p, &p, error));
        p->key = *key;
        sifr_status status = make_layouts(&products->lt, p, error);
        if (status == SIFR_OK) status = make_desc(&products->lt, p, error);
        if (status != SIFR_OK) {
            free_product(&products->lt, p);
            return status;
        }
        product **bucket = bucket_of(products, key);
        p->next = *bucket;
        *bucket = p;
    }
    *out = p;
    return SIFR_OK;
}

/* One chunk of the terms from `first` on, or all. */
static cuda_gemm piece_of(const cuda_gemm *gemm, int64_t first) {
    cuda_gemm piece = *gemm;
    int64_t bytes = base_dtype_bytes(gemm->a.dtype);
    if (gemm->chunk == 0) return piece;
    piece.a.rows = piece.b.rows = base_min_i64(gemm->chunk, gemm->a.rows - first);
    if (gemm->a.data) piece.a.data = (char *)gemm->a.data + first * gemm->a.stride * bytes;
    if (gemm->b.data) piece.b.data = (char *)gemm->b.data + first * gemm->b.stride * bytes;
    piece.accumulate = gemm->accumulate || first > 0;
    return piece;
}

static int64_t step_of(const cuda_gemm *gemm) {
    return gemm->chunk > 0 ? gemm->chunk : terms(gemm);
}

static sifr_status reserve_piece(cuda_products *products, const cuda_gemm *piece,
                                 sifr_error *error) {
    product_key key = key_of(piece), all = key;
    product *part, *whole = NULL;
    if (key.whole > 0) {
        all.m = key.whole, all.whole = 0;
        BASE_TRY(make(products, &all, &whole, error));
    }
    BASE_TRY(make(products, &key, &part, error));
    part->whole = whole;
    return SIFR_OK;
}

/* The first chunk and the last: those between are like the first. */
static sifr_status reserve_locked(cuda_products *products, const cuda_gemm *gemm,
                                  sifr_error *error) {
    int64_t step = step_of(gemm);
    cuda_gemm first = piece_of(gemm, 0), last = piece_of(gemm, (terms(gemm) - 1) / step * step);
    BASE_TRY(reserve_piece(products, &first, error));
    return reserve_piece(products, &last, error);
}

sifr_status cuda_products_reserve(cuda_products *products, const cuda_gemm *gemm,
                                  sifr_error *error) {
    if (!cuda_products_fit(gemm)) return SIFR_OK;
    pthread_mutex_lock(&products->lock);
    sifr_status status = reserve_locked(products, gemm, error);
    pthread_mutex_unlock(&products->lock);
    return status;
}

static uint32_t number_of(const cuda_lt *lt, const cuda_lt_algorithm *algorithm, unsigned what,
                          size_t bytes) {
    unsigned char value[4] = {0};
    uint32_t number = 0;
    size_t written = 0;
    lt->cublasLtMatmulAlgoConfigGetAttribute(algorithm, what, value, bytes, &written);
    if (bytes == sizeof(uint16_t)) {
        uint16_t half;
        memcpy(&half, value, sizeof half);
        return half;
    }
    memcpy(&number, value, sizeof number);
    return number;
}

static void write_algorithm(const cuda_lt *lt, const cuda_lt_algorithm *algorithm, char *out,
                            size_t size) {
    snprintf(out, size, "algorithm %u, tile %u, stages %u, cluster %u",
             number_of(lt, algorithm, CUDA_LT_ALGORITHM_ID, 4),
             number_of(lt, algorithm, CUDA_LT_ALGORITHM_TILE, 4),
             number_of(lt, algorithm, CUDA_LT_ALGORITHM_STAGES, 4),
             number_of(lt, algorithm, CUDA_LT_ALGORITHM_CLUSTER, 2));
}

static void write_shape(const product_key *key, char *out, size_t size) {
    static const char *const forms[] = {
        [CUDA_GEMM_NT] = "nt", [CUDA_GEMM_NN] = "nn", [CUDA_GEMM_TN] = "tn"};
    snprintf(out, size, "%s %lld x %lld x %lld in %s", forms[key->form], (long long)key->m,
             (long long)key->n, (long long)key->k, base_dtype_name((base_dtype)key->type));
}

/* Whether cuBLASLt only says that it has nothing for a product. */
static bool is_refusal(cuda_lt_status status) {
    return status == CUDA_LT_NOT_SUPPORTED || status == CUDA_LT_ARCH_MISMATCH ||
           status == CUDA_LT_INVALID_VALUE;
}

/* The room behind the first aligned address. */
static size_t workspace_bytes(void) {
    return (size_t)CUDA_PRODUCTS_WORKSPACE - WORKSPACE_ALIGNMENT;
}

static void choose(cuda_products *products, product *p, const cuda_lt_choice *choice) {
    const cuda_lt *lt = &products->lt;
    bool takes =
        choice && choice->status == CUDA_LT_OK && choice->workspace_bytes <= workspace_bytes() &&
        number_of(lt, &choice->algorithm, CUDA_LT_ALGORITHM_REDUCTION, 4) == CUDA_LT_REDUCTION_NONE;
    p->state = takes ? PRODUCT_CHOSEN : PRODUCT_NONE;
    if (takes)
        p->algorithm = choice->algorithm;
    else if (!products->lack[0])
        write_shape(&p->key, products->lack, sizeof products->lack);
}

static sifr_status wish_alignment(cuda_products *products, const product_key *key,
                                  sifr_error *error) {
    const struct {
        unsigned attribute;
        int64_t sliced;
    } operands[] = {{CUDA_LT_ALIGNMENT_A, key->b_sliced},
                    {CUDA_LT_ALIGNMENT_B, key->a_sliced},
                    {CUDA_LT_ALIGNMENT_C, key->c_sliced},
                    {CUDA_LT_ALIGNMENT_D, key->c_sliced}};
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++) {
        uint32_t bytes = (uint32_t)alignment_of(operands[i].sliced);
        CUDA_LT_TRY(&products->lt, error, cublasLtMatmulPreferenceSetAttribute, products->wish,
                    operands[i].attribute, &bytes, sizeof bytes);
    }
    return SIFR_OK;
}

static sifr_status ask(cuda_products *products, product *p, sifr_error *error) {
    const cuda_lt *lt = &products->lt;
    cuda_lt_choice choice = {.status = CUDA_LT_NOT_SUPPORTED};
    /* Of a bias only the alignment is looked at here, and that must not be by chance. */
    const void *bias = (const void *)(uintptr_t)MATRIX_ALIGNMENT;
    int count = 0;
    BASE_TRY(wish_alignment(products, &p->key, error));
    if (p->key.bias)
        CUDA_LT_TRY(lt, error, cublasLtMatmulDescSetAttribute, p->desc, CUDA_LT_BIAS_POINTER, &bias,
                    sizeof bias);
    cuda_lt_status status = lt->cublasLtMatmulAlgoGetHeuristic(
        products->handle, p->desc, p->a, p->b, p->c, p->c, products->wish, 1, &choice, &count);
    if (status != CUDA_LT_OK && !is_refusal(status))
        return cuda_lt_check(status, error, "cublasLtMatmulAlgoGetHeuristic");
    choose(products, p, status == CUDA_LT_OK && count > 0 ? &choice : NULL);
    return SIFR_OK;
}

/* The algorithm of the whole, if it can take the part. */
static sifr_status follow_whole(cuda_products *products, product *p, sifr_error *error) {
    cuda_lt_choice choice = {.status = CUDA_LT_NOT_SUPPORTED};
    if (p->whole->state == PRODUCT_NONE) {
        p->state = PRODUCT_NONE;
        return SIFR_OK;
    }
    cuda_lt_status status = products->lt.cublasLtMatmulAlgoCheck(
        products->handle, p->desc, p->a, p->b, p->c, p->c, &p->whole->algorithm, &choice);
    if (status != CUDA_LT_OK && !is_refusal(status))
        return cuda_lt_check(status, error, "cublasLtMatmulAlgoCheck");
    choice.algorithm = p->whole->algorithm;
    choose(products, p, status == CUDA_LT_OK ? &choice : NULL);
    return SIFR_OK;
}

static sifr_status settle(cuda_products *products, product *p, sifr_error *error) {
    if (p->state != PRODUCT_NEW) return SIFR_OK;
    if (!p->whole) return ask(products, p, error);
    if (p->whole->state == PRODUCT_NEW) BASE_TRY(ask(products, p->whole, error));
    return follow_whole(products, p, error);
}

static bool is_aligned(const void *data, int64_t bytes) {
    return (uintptr_t)data % (uintptr_t)bytes == 0;
}

static bool are_aligned(const cuda_gemm *gemm, const product_key *key) {
    return is_aligned(gemm->a.data, alignment_of(key->a_sliced)) &&
           is_aligned(gemm->b.data, alignment_of(key->b_sliced)) &&
           is_aligned(gemm->c.data, alignment_of(key->c_sliced)) &&
           (!key->bias || is_aligned(gemm->bias.data, MATRIX_ALIGNMENT));
}

/* The product of a piece if cuBLASLt computes it, else NULL. */
static sifr_status settle_piece(cuda_products *products, const cuda_gemm *piece, product **out,
                                sifr_error *error) {
    product_key key = key_of(piece);
    product *p = find(products, &key);
    *out = NULL;
    if (!p || !are_aligned(piece, &key)) return SIFR_OK;
    BASE_TRY(settle(products, p, error));
    if (p->state == PRODUCT_CHOSEN) *out = p;
    return SIFR_OK;
}

static sifr_status fail_product(const cuda_lt *lt, const product *p, cuda_lt_status status,
                                sifr_error *error) {
    char shape[160], algorithm[100];
    write_shape(&p->key, shape, sizeof shape);
    write_algorithm(lt, &p->algorithm, algorithm, sizeof algorithm);
    return cuda_lt_check(status, error, "cublasLtMatmul (%s, %s)", shape, algorithm);
}

static sifr_status run_piece(cuda_products *products, const product *p, const cuda_gemm *piece,
                             cuda_stream stream, sifr_error *error) {
    const cuda_lt *lt = &products->lt;
    const float alpha = 1.0f, beta = piece->accumulate ? 1.0f : 0.0f;
    uintptr_t workspace = (uintptr_t)piece->workspace;
    workspace += (WORKSPACE_ALIGNMENT - workspace % WORKSPACE_ALIGNMENT) % WORKSPACE_ALIGNMENT;
    if (p->key.bias)
        CUDA_LT_TRY(lt, error, cublasLtMatmulDescSetAttribute, p->desc, CUDA_LT_BIAS_POINTER,
                    &piece->bias.data, sizeof piece->bias.data);
    cuda_lt_status status =
        lt->cublasLtMatmul(products->handle, p->desc, &alpha, piece->b.data, p->a, piece->a.data,
                           p->b, &beta, piece->c.data, p->c, piece->c.data, p->c, &p->algorithm,
                           (void *)workspace, workspace_bytes(), stream);
    return status == CUDA_LT_OK ? SIFR_OK : fail_product(lt, p, status, error);
}

/* All chunks or none, so that a sum is of one kind. */
static sifr_status run_locked(cuda_products *products, const cuda_gemm *gemm, cuda_stream stream,
                              bool *done, sifr_error *error) {
    int64_t step = step_of(gemm), k = terms(gemm);
    product *first, *last, *p;
    cuda_gemm piece = piece_of(gemm, (k - 1) / step * step);
    BASE_TRY(settle_piece(products, &piece, &last, error));
    piece = piece_of(gemm, 0);
    BASE_TRY(settle_piece(products, &piece, &first, error));
    if (!first || !last) return SIFR_OK;
    for (int64_t at = 0; at < k; at += step) {
        piece = piece_of(gemm, at);
        p = at + step < k ? first : last;
        BASE_TRY(run_piece(products, p, &piece, stream, error));
    }
    *done = true;
    return SIFR_OK;
}

int64_t cuda_products_calls(const cuda_gemm *gemm) {
    if (!gemm->workspace || !cuda_products_fit(gemm)) return 0;
    return (terms(gemm) + step_of(gemm) - 1) / step_of(gemm);
}

sifr_status cuda_products_run(cuda_products *products, const cuda_gemm *gemm, cuda_stream stream,
                              bool *done, sifr_error *error) {
    *done = false;
    if (cuda_products_calls(gemm) == 0) return SIFR_OK;
    pthread_mutex_lock(&products->lock);
    sifr_status status = run_locked(products, gemm, stream, done, error);
    pthread_mutex_unlock(&products->lock);
    return status;
}

const char *cuda_products_lack(const cuda_products *products) {
    return products->lack;
}

size_t cuda_products_describe(const cuda_products *products, char *out, size_t size) {
    size_t used = 0;
    if (size > 0) out[0] = '\0';
    for (size_t i = 0; i < BUCKETS; i++)
        for (const product *p = products->buckets[i]; p; p = p->next) {
            char shape[160], algorithm[100];
            if (p->state != PRODUCT_CHOSEN) continue;
            write_shape(&p->key, shape, sizeof shape);
            write_algorithm(&products->lt, &p->algorithm, algorithm, sizeof algorithm);
            used += (size_t)snprintf(used < size ? out + used : NULL, used < size ? size - used : 0,
                                     "%s: %s\n", shape, algorithm);
        }
    return used;
}

static sifr_status start(cuda_products *products, sifr_error *error) {
    const cuda_lt *lt = &products->lt;
    uint64_t bytes = workspace_bytes();
    uint32_t reduction = CUDA_LT_REDUCTION_NONE;
    CUDA_LT_TRY(lt, error, cublasLtCreate, &products->handle);
    CUDA_LT_TRY(lt, error, cublasLtMatmulPreferenceCreate, &products->wish);
    CUDA_LT_TRY(lt, error, cublasLtMatmulPreferenceSetAttribute, products->wish,
                CUDA_LT_WORKSPACE_BYTES, &bytes, sizeof bytes);
    CUDA_LT_TRY(lt, error, cublasLtMatmulPreferenceSetAttribute, products->wish,
                CUDA_LT_REDUCTION_MASK, &reduction, sizeof reduction);
    return SIFR_OK;
}

sifr_status cuda_products_open(const cuda_lt *lt, cuda_products **out, sifr_error *error) {
    cuda_products *products;
    BASE_TRY(base_alloc(1, sizeof *products, &products, error));
    products->lt = *lt;
    pthread_mutex_init(&products->lock, NULL);
    sifr_status status = start(products, error);
    if (status != SIFR_OK) {
        cuda_products_close(products);
        return status;
    }
    *out = products;
    return SIFR_OK;
}

void cuda_products_close(cuda_products *products) {
    if (!products) return;
    for (size_t i = 0; i < BUCKETS; i++)
        for (product *p = products->buckets[i], *next; p; p = next) {
            next = p->next;
            free_product(&products->lt, p);
        }
    if (products->wish) products->lt.cublasLtMatmulPreferenceDestroy(products->wish);
    if (products->handle) products->lt.cublasLtDestroy(products->handle);
    pthread_mutex_destroy(&products->lock);
    free(products);
}
