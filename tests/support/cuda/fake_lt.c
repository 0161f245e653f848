#include "support/cuda/fake_lt.h"

#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "support/cuda/fake_parts.h"

struct cublasLtContext {
    int unused;
};

struct cuda_lt_desc_body {
    int32_t transpose_a, transpose_b;
    uint32_t epilogue;
    const void *bias;
};

struct cuda_lt_layout_body {
    unsigned type;
    uint64_t rows, columns; /* column-major */
    int64_t stride;
};

struct cuda_lt_wish_body {
    uint64_t workspace_bytes;
    uint32_t reduction_mask;
    uint32_t alignments[4]; /* A, B, C, D */
};

/* In cuda_lt_algorithm.data. */
enum { AT_MAGIC, AT_LANES, AT_REDUCTION, AT_ALIGNMENTS = 4, MAGIC = 0xa160, DEFAULT_MASK = 7 };
enum { WIDTH = 16 }; /* bytes that its loads of A and B need */

static struct {
    fake_lt_trouble trouble;
    fake_lt_counts counts;
} lt;

fake_lt_counts fake_lt_count(void) {
    return lt.counts;
}

static cuda_lt_status create(cuda_lt_handle *handle) {
    if (lt.trouble.create) return lt.trouble.create;
    if (!fake_current()) return CUDA_LT_NOT_INITIALIZED;
    *handle = fake_take(sizeof **handle);
    lt.counts.handles++;
    return CUDA_LT_OK;
}

static cuda_lt_status destroy(cuda_lt_handle handle) {
    if (!handle) return CUDA_LT_INVALID_VALUE;
    free(handle);
    lt.counts.handles--;
    return CUDA_LT_OK;
}

static void *make(size_t bytes) {
    lt.counts.objects++;
    lt.counts.made++;
    return fake_take(bytes);
}

static cuda_lt_status discard(void *object) {
    if (!object) return CUDA_LT_INVALID_VALUE;
    free(object);
    lt.counts.objects--;
    return CUDA_LT_OK;
}

static cuda_lt_status desc_create(cuda_lt_desc *desc, unsigned compute, unsigned scale) {
    if (compute != CUDA_LT_COMPUTE_FP32 || scale != CUDA_LT_FP32) return CUDA_LT_INVALID_VALUE;
    *desc = make(sizeof **desc);
    (*desc)->epilogue = 1; /* none */
    return CUDA_LT_OK;
}

static cuda_lt_status desc_destroy(cuda_lt_desc desc) {
    return discard(desc);
}

static cuda_lt_status write_to(void *to, size_t size, const void *value, size_t bytes) {
    if (bytes != size) return CUDA_LT_INVALID_VALUE;
    memcpy(to, value, bytes);
    return CUDA_LT_OK;
}

static cuda_lt_status desc_set(cuda_lt_desc desc, unsigned attribute, const void *value,
                               size_t bytes) {
    switch (attribute) {
    case CUDA_LT_TRANSPOSE_A:
        return write_to(&desc->transpose_a, sizeof desc->transpose_a, value, bytes);
    case CUDA_LT_TRANSPOSE_B:
        return write_to(&desc->transpose_b, sizeof desc->transpose_b, value, bytes);
    case CUDA_LT_EPILOGUE:
        return write_to(&desc->epilogue, sizeof desc->epilogue, value, bytes);
    case CUDA_LT_BIAS_POINTER:
        return write_to(&desc->bias, sizeof desc->bias, value, bytes);
    default:
        return CUDA_LT_INVALID_VALUE;
    }
}

static cuda_lt_status layout_create(cuda_lt_layout *layout, unsigned type, uint64_t rows,
                                    uint64_t columns, int64_t stride) {
    bool known = type == CUDA_LT_FP32 || type == CUDA_LT_FP16 || type == CUDA_LT_BF16;
    if (!known || rows == 0 || columns == 0 || stride < (int64_t)rows) return CUDA_LT_INVALID_VALUE;
    *layout = make(sizeof **layout);
    **layout = (struct cuda_lt_layout_body){type, rows, columns, stride};
    return CUDA_LT_OK;
}

static cuda_lt_status layout_destroy(cuda_lt_layout layout) {
    return discard(layout);
}

static cuda_lt_status wish_create(cuda_lt_wish *wish) {
    *wish = make(sizeof **wish);
    (*wish)->reduction_mask = DEFAULT_MASK;
    for (int i = 0; i < 4; i++) (*wish)->alignments[i] = 256;
    return CUDA_LT_OK;
}

static cuda_lt_status wish_destroy(cuda_lt_wish wish) {
    return discard(wish);
}

static cuda_lt_status wish_set(cuda_lt_wish wish, unsigned attribute, const void *value,
                               size_t bytes) {
    if (attribute == CUDA_LT_WORKSPACE_BYTES)
        return write_to(&wish->workspace_bytes, sizeof wish->workspace_bytes, value, bytes);
    if (attribute == CUDA_LT_REDUCTION_MASK)
        return write_to(&wish->reduction_mask, sizeof wish->reduction_mask, value, bytes);
    if (attribute >= CUDA_LT_ALIGNMENT_A && attribute <= CUDA_LT_ALIGNMENT_D)
        return write_to(&wish->alignments[attribute - CUDA_LT_ALIGNMENT_A], sizeof(uint32_t), value,
                        bytes);
    return CUDA_LT_INVALID_VALUE;
}

typedef struct shape {
    int64_t m, n, k;
} shape;

/* Whether the operands are a product, and one that cuBLASLt's table of types has. */
static bool is_product(cuda_lt_desc desc, cuda_lt_layout a, cuda_lt_layout b, cuda_lt_layout c,
                       cuda_lt_layout d, shape *out) {
    uint64_t m = desc->transpose_a ? a->columns : a->rows;
    uint64_t k = desc->transpose_a ? a->rows : a->columns;
    uint64_t inner = desc->transpose_b ? b->columns : b->rows;
    uint64_t n = desc->transpose_b ? b->rows : b->columns;
    bool types = a->type == b->type && a->type != CUDA_LT_FP32 && c->type == d->type &&
                 (d->type == a->type || d->type == CUDA_LT_FP32);
    bool biased = desc->epilogue == CUDA_LT_EPILOGUE_BIAS;
    *out = (shape){(int64_t)m, (int64_t)n, (int64_t)k};
    return types && k == inner && d->rows == m && d->columns == n && c->rows == m &&
           c->columns == n && c->stride == d->stride && (desc->epilogue == 1 || biased);
}

static bool has_wide_loads(cuda_lt_layout layout) {
    return layout->stride * 2 % WIDTH == 0;
}

static size_t workspace_of(const shape *s) {
    return (size_t)s->m * sizeof(float);
}

static cuda_lt_status heuristic(cuda_lt_handle handle, cuda_lt_desc desc, cuda_lt_layout a,
                                cuda_lt_layout b, cuda_lt_layout c, cuda_lt_layout d,
                                cuda_lt_wish wish, int wanted, cuda_lt_choice *choices,
                                int *count) {
    shape s;
    *count = 0;
    lt.counts.asked++;
    if (lt.trouble.heuristic) return lt.trouble.heuristic;
    if (!handle || wanted < 1) return CUDA_LT_INVALID_VALUE;
    if (lt.trouble.nothing || !is_product(desc, a, b, c, d, &s) || !has_wide_loads(a) ||
        !has_wide_loads(b) || wish->alignments[0] < WIDTH || wish->alignments[1] < WIDTH ||
        wish->alignments[2] != wish->alignments[3] || workspace_of(&s) > wish->workspace_bytes ||
        (desc->epilogue == CUDA_LT_EPILOGUE_BIAS && (uintptr_t)desc->bias % WIDTH != 0))
        return CUDA_LT_NOT_SUPPORTED;
    uint32_t reduction = lt.trouble.cuts ? DEFAULT_MASK : wish->reduction_mask;
    *choices = (cuda_lt_choice){.workspace_bytes = workspace_of(&s), .status = CUDA_LT_OK};
    choices->algorithm.data[AT_MAGIC] = MAGIC;
    choices->algorithm.data[AT_LANES] = (uint64_t)(1 + s.n % 7);
    choices->algorithm.data[AT_REDUCTION] = reduction & 1;
    for (int i = 0; i < 4; i++) choices->algorithm.data[AT_ALIGNMENTS + i] = wish->alignments[i];
    *count = 1;
    return CUDA_LT_OK;
}

static cuda_lt_status check(cuda_lt_handle handle, cuda_lt_desc desc, cuda_lt_layout a,
                            cuda_lt_layout b, cuda_lt_layout c, cuda_lt_layout d,
                            const cuda_lt_algorithm *algorithm, cuda_lt_choice *choice) {
    shape s;
    lt.counts.checked++;
    if (!handle || algorithm->data[AT_MAGIC] != MAGIC || !is_product(desc, a, b, c, d, &s))
        return CUDA_LT_INVALID_VALUE;
    if (lt.trouble.no_parts) return CUDA_LT_NOT_SUPPORTED;
    *choice = (cuda_lt_choice){
        .algorithm = *algorithm, .workspace_bytes = workspace_of(&s), .status = CUDA_LT_OK};
    return CUDA_LT_OK;
}

static cuda_lt_status configuration(const cuda_lt_algorithm *algorithm, unsigned attribute,
                                    void *value, size_t bytes, size_t *written) {
    uint32_t number = attribute == CUDA_LT_ALGORITHM_ID     ? 66
                      : attribute == CUDA_LT_ALGORITHM_TILE ? (uint32_t)algorithm->data[AT_LANES]
                      : attribute == CUDA_LT_ALGORITHM_REDUCTION
                          ? (uint32_t)algorithm->data[AT_REDUCTION]
                      : attribute == CUDA_LT_ALGORITHM_STAGES ? 36
                                                              : 3;
    uint16_t half = (uint16_t)number;
    bool is_half = attribute == CUDA_LT_ALGORITHM_CLUSTER;
    *written = is_half ? sizeof half : sizeof number;
    return is_half ? write_to(value, bytes, &half, sizeof half)
                   : write_to(value, bytes, &number, sizeof number);
}

typedef struct product {
    const void *a, *b, *bias;
    void *c;
    float *sums; /* in the workspace: one for each row */
    unsigned type, c_type;
    bool transpose_a, transpose_b;
    int64_t a_stride, b_stride, c_stride;
    shape s;
    int64_t lanes;
    float alpha, beta;
} product;

static float load(const void *from, unsigned type, int64_t at) {
    if (type == CUDA_LT_FP32) return ((const float *)from)[at];
    uint16_t bits = ((const uint16_t *)from)[at];
    return type == CUDA_LT_BF16 ? base_bf16_to_float(bits) : base_half_to_float(bits);
}

static void store(void *to, unsigned type, int64_t at, float value) {
    if (type == CUDA_LT_FP32)
        ((float *)to)[at] = value;
    else
        ((uint16_t *)to)[at] =
            type == CUDA_LT_BF16 ? base_bf16_from_float(value) : base_half_from_float(value);
}

/* Term i belongs to lane i % lanes; lanes are added in order. */
static float sum_of(const product *p, int64_t row, int64_t column) {
    float sum = 0;
    for (int64_t lane = 0; lane < p->lanes; lane++) {
        float part = 0;
        for (int64_t i = lane; i < p->s.k; i += p->lanes) {
            int64_t at_a = p->transpose_a ? i + row * p->a_stride : row + i * p->a_stride;
            int64_t at_b = p->transpose_b ? column + i * p->b_stride : i + column * p->b_stride;
            part += load(p->a, p->type, at_a) * load(p->b, p->type, at_b);
        }
        sum += part;
    }
    return sum;
}

static void run_product(const fake_launch *launch, const void *arguments) {
    const product *p = arguments;
    (void)launch;
    for (int64_t column = 0; column < p->s.n; column++) {
        for (int64_t row = 0; row < p->s.m; row++) p->sums[row] = sum_of(p, row, column);
        for (int64_t row = 0; row < p->s.m; row++) {
            int64_t at = row + column * p->c_stride;
            float value = p->alpha * p->sums[row];
            if (p->beta < 0 || p->beta > 0) value += p->beta * load(p->c, p->c_type, at);
            if (p->bias) value += load(p->bias, p->c_type, row);
            store(p->c, p->c_type, at, value);
        }
    }
}

static const fake_kernel product_kernel = {"a product of cuBLASLt", sizeof(product), 0, run_product,
                                           NULL};

static size_t element_bytes(unsigned type) {
    return type == CUDA_LT_FP32 ? 4 : 2;
}

/* Where a kernel reaches the matrix; NULL if it is not in one block, or not aligned. */
static void *reach(const void *data, cuda_lt_layout layout, uint64_t alignment) {
    size_t elements = (size_t)layout->stride * (layout->columns - 1) + layout->rows;
    if ((uintptr_t)data % alignment != 0) return NULL;
    return fake_resolve((cuda_address)(uintptr_t)data, elements * element_bytes(layout->type));
}

static void submit(cuda_stream stream, const product *p) {
    fake_work work = {.kind = FAKE_KERNEL,
                      .launch = {&product_kernel, {1, 1, 1}, {1, 1, 1}, 0},
                      .arguments = fake_take(sizeof *p)};
    memcpy(work.arguments, p, sizeof *p);
    fake.counts.launches++;
    lt.counts.products++;
    if (fake.fail_after == 0) work.fails = fake.fail_with;
    if (fake.fail_after >= 0) fake.fail_after--;
    fake_submit(stream, &work);
}

static cuda_lt_status multiply(cuda_lt_handle handle, cuda_lt_desc desc, const void *alpha,
                               const void *a, cuda_lt_layout layout_a, const void *b,
                               cuda_lt_layout layout_b, const void *beta, const void *c,
                               cuda_lt_layout layout_c, void *d, cuda_lt_layout layout_d,
                               const cuda_lt_algorithm *algorithm, void *workspace, size_t bytes,
                               cuda_stream stream) {
    const uint64_t *alignments = algorithm->data + AT_ALIGNMENTS;
    if (lt.trouble.multiply) return lt.trouble.multiply;
    if (fake_enter(true) != CUDA_OK) return CUDA_LT_EXECUTION_FAILED;
    if (lt.counts.products == 0 && !fake_hold(lt.trouble.kernels)) {
        fake_leave(CUDA_OK);
        return CUDA_LT_ALLOC_FAILED;
    }
    product p = {.a = reach(a, layout_a, alignments[0]),
                 .b = reach(b, layout_b, alignments[1]),
                 .c = reach(d, layout_d, alignments[3]),
                 .type = layout_a->type,
                 .c_type = layout_d->type,
                 .transpose_a = desc->transpose_a,
                 .transpose_b = desc->transpose_b,
                 .a_stride = layout_a->stride,
                 .b_stride = layout_b->stride,
                 .c_stride = layout_d->stride,
                 .lanes = (int64_t)algorithm->data[AT_LANES],
                 .alpha = *(const float *)alpha,
                 .beta = *(const float *)beta};
    bool right = handle && is_product(desc, layout_a, layout_b, layout_c, layout_d, &p.s) &&
                 algorithm->data[AT_MAGIC] == MAGIC && stream && stream->tail && c == d && p.a &&
                 p.b && p.c && bytes >= workspace_of(&p.s) && (uintptr_t)workspace % 256 == 0;
    if (right && lt.trouble.short_sums) p.s.k--;
    if (right) p.sums = fake_resolve((cuda_address)(uintptr_t)workspace, bytes);
    if (right && desc->epilogue == CUDA_LT_EPILOGUE_BIAS) {
        p.bias = fake_resolve((cuda_address)(uintptr_t)desc->bias,
                              (size_t)p.s.m * element_bytes(p.c_type));
        right = p.bias != NULL;
    }
    right = right && p.sums;
    if (right) submit(stream, &p);
    fake_leave(CUDA_OK);
    return right ? CUDA_LT_OK : CUDA_LT_INVALID_VALUE;
}

void fake_lt_open(const fake_lt_trouble *trouble, cuda_lt *out) {
    lt.trouble = *trouble;
    lt.counts = (fake_lt_counts){0};
    *out = (cuda_lt){.cublasLtCreate = create,
                     .cublasLtDestroy = destroy,
                     .cublasLtMatmulDescCreate = desc_create,
                     .cublasLtMatmulDescSetAttribute = desc_set,
                     .cublasLtMatmulDescDestroy = desc_destroy,
                     .cublasLtMatrixLayoutCreate = layout_create,
                     .cublasLtMatrixLayoutDestroy = layout_destroy,
                     .cublasLtMatmulPreferenceCreate = wish_create,
                     .cublasLtMatmulPreferenceSetAttribute = wish_set,
                     .cublasLtMatmulPreferenceDestroy = wish_destroy,
                     .cublasLtMatmulAlgoGetHeuristic = heuristic,
                     .cublasLtMatmulAlgoCheck = check,
                     .cublasLtMatmulAlgoConfigGetAttribute = configuration,
                     .cublasLtMatmul = multiply,
                     .major = 13,
                     .minor = 0,
                     .patch = 2};
}
