#include "device/cuda/attention/cuda_attention.h"

#include "base/assert.h"
#include "base/checked.h"
#include "device/cuda/attention/attention_arguments.h"
#include "device/cuda/cuda_launch.h"

/* Positions, and numbers of blocks, are counted in 32 bits. */
static const int64_t most_length = INT64_C(1) << 30, most_blocks = INT32_MAX;

/* The kernels for one type and heads of up to `width` values. */
typedef struct attention_kernels {
    base_dtype dtype;
    int32_t width;
    uint32_t threads;
    int64_t rows, backward_rows; /* of a block */
    uint32_t shared, backward_shared;
    cuda_kernel forward, backward_keys, backward_queries, delta;
    cuda_kernel tables; /* of scores by relative position: their gradients */
} attention_kernels;

#define NARROW(type, DTYPE, w)                                                                     \
    {                                                                                              \
        .dtype = DTYPE, .width = w, .threads = ATTENTION_THREADS, .rows = ATTENTION_ROWS,          \
        .backward_rows = ATTENTION_BACKWARD_ROWS(w), .shared = ATTENTION_FORWARD_BYTES(w),         \
        .backward_shared = ATTENTION_BACKWARD_BYTES(w),                                            \
        .forward = cuda_kernel_attention_forward_##type##_##w,                                     \
        .backward_keys = cuda_kernel_attention_backward_keys_##type##_##w,                         \
        .backward_queries = cuda_kernel_attention_backward_queries_##type##_##w,                   \
        .delta = cuda_kernel_attention_delta_##type                                                \
    }
#define FP32(w)                                                                                    \
    {                                                                                              \
        .dtype = BASE_FP32, .width = w, .threads = ATTENTION_FP32_THREADS,                         \
        .rows = ATTENTION_FP32_TILE(w), .backward_rows = ATTENTION_FP32_TILE(w),                   \
        .shared = ATTENTION_PLAIN_BYTES(w, ATTENTION_FP32_TILE(w), 3, 1),                          \
        .backward_shared = ATTENTION_PLAIN_BYTES(w, ATTENTION_FP32_TILE(w), 4, 2),                 \
        .forward = cuda_kernel_attention_forward_fp32_##w,                                         \
        .backward_keys = cuda_kernel_attention_backward_keys_fp32_##w,                             \
        .backward_queries = cuda_kernel_attention_backward_queries_fp32_##w,                       \
        .delta = cuda_kernel_attention_delta_fp32                                                  \
    }

#define RELATIVE(type, DTYPE)                                                                      \
    {                                                                                              \
        .dtype = DTYPE, .width = ATTENTION_RELATIVE_WIDTH, .threads = ATTENTION_FP32_THREADS,      \
        .rows = ATTENTION_RELATIVE_TILE, .backward_rows = ATTENTION_RELATIVE_TILE,                 \
        .shared = RELATIVE_BYTES(3, 1), .backward_shared = RELATIVE_BYTES(4, 2),                   \
        .forward = cuda_kernel_attention_relative_##type,                                          \
        .backward_keys = cuda_kernel_attention_relative_keys_##type,                               \
        .backward_queries = cuda_kernel_attention_relative_queries_##type,                         \
        .delta = cuda_kernel_attention_delta_##type,                                               \
        .tables = cuda_kernel_attention_relative_tables_##type                                     \
    }
#define RELATIVE_BYTES(tiles, squares)                                                             \
    (ATTENTION_PLAIN_BYTES(ATTENTION_RELATIVE_WIDTH, ATTENTION_RELATIVE_TILE, tiles, squares) +    \
     ATTENTION_BAND_BYTES(ATTENTION_RELATIVE_WIDTH, ATTENTION_RELATIVE_TILE))

/* Of each type in the order of widths: the first one that is wide enough is taken. */
static const attention_kernels kernel_sets[] = {
    NARROW(bf16, BASE_BF16, 64),
    NARROW(bf16, BASE_BF16, 128),
    NARROW(bf16, BASE_BF16, 256),
    NARROW(fp16, BASE_FP16, 64),
    NARROW(fp16, BASE_FP16, 128),
    NARROW(fp16, BASE_FP16, 256),
    FP32(128),
    FP32(256),
};

static const attention_kernels relative_sets[] = {
    RELATIVE(bf16, BASE_BF16),
    RELATIVE(fp16, BASE_FP16),
    RELATIVE(fp32, BASE_FP32),
};

static const attention_kernels *find(const attention_kernels *sets, size_t count,
                                     const device_call *call) {
    for (size_t i = 0; i < count; i++)
        if (sets[i].dtype == call->x[0].dtype &&
            call->attributes.attention.head_dim <= sets[i].width)
            return &sets[i];
    return NULL;
}

/* The operands of the tables of relative positions, for queries and for keys. */
enum { KEYS = 4, QUERIES = 5 };

static bool has(const device_matrix *m) {
    return m->dtype != BASE_NONE;
}

/* Rows of the tables; 0: there are none. */
static int64_t places_of(const device_call *call) {
    return has(&call->x[KEYS]) ? call->x[KEYS].rows : call->x[QUERIES].rows;
}

/* NULL: heads are too wide. */
static const attention_kernels *kernels_of(const device_call *call) {
    if (places_of(call) > 0)
        return find(relative_sets, sizeof relative_sets / sizeof *relative_sets, call);
    return find(kernel_sets, sizeof kernel_sets / sizeof *kernel_sets, call);
}

static int64_t spans_of(const device_call *call) {
    return (call->attributes.attention.length + ATTENTION_SPAN - 1) / ATTENTION_SPAN;
}

static int64_t range_bytes(const device_call *call) {
    if (!has(&call->x[3])) return 0;
    return base_ceil_to(call->attributes.attention.sequences * spans_of(call) * 8, 256);
}

static int64_t distances_of(const device_call *call) {
    return places_of(call) > 0 ? 2 * call->attributes.attention.length - 1 : 0;
}

static int64_t distance_bytes(const device_call *call) {
    return base_ceil_to(distances_of(call) * 4, 256);
}

static int64_t delta_bytes(const device_call *call) {
    if (call->kernel != DEVICE_ATTENTION_BACKWARD) return 0;
    return base_ceil_to(call->attributes.attention.heads * call->x[0].rows * 4, 256);
}

sifr_status cuda_prepare_attention(device *dev, device_call *call, sifr_error *error) {
    (void)dev;
    const char *name = device_kernel_name(call->kernel);
    int64_t heads = call->attributes.attention.heads, rows = call->x[0].rows;
    if (call->attributes.attention.alibi > 0)
        return base_fail(error, SIFR_USAGE,
                         "%s: a bias by distance (ALiBi) is not supported on CUDA yet; --device "
                         "cpu has it",
                         name);
    if (kernels_of(call) == NULL)
        return base_fail(
            error, SIFR_USAGE,
            "%s: heads of %d values: on CUDA they have at most %d%s; --device cpu has no limit",
            name, call->attributes.attention.head_dim,
            places_of(call) > 0 ? ATTENTION_RELATIVE_WIDTH : ATTENTION_WIDEST,
            places_of(call) > 0 ? " with relative positions" : "");
    if (call->attributes.attention.length > most_length || rows > most_blocks / heads ||
        places_of(call) > most_blocks / heads)
        return base_fail(error, SIFR_USAGE,
                         "%s: %lld rows of %lld heads, sequences of %lld: more than 32 bits count",
                         name, (long long)rows, (long long)heads,
                         (long long)call->attributes.attention.length);
    call->scratch_bytes = range_bytes(call) + distance_bytes(call) + delta_bytes(call);
    return SIFR_OK;
}

static attention_operand operand_of(const device_matrix *m) {
    return has(m) ? (attention_operand){m->data, m->stride} : (attention_operand){0};
}

static attention_arguments arguments_of(const device_call *call) {
    int64_t length = call->attributes.attention.length, window = call->attributes.attention.window;
    window = window > 0 ? base_min_i64(window, length) : length;
    uint32_t threshold = (uint32_t)(call->attributes.attention.dropout * 65536.0f + 0.5f);
    base_assert(call->attributes.attention.whole_heads == 0); /* of tensor ranks */
    attention_arguments a = {
        .q = operand_of(&call->x[0]),
        .k = operand_of(&call->x[1]),
        .v = operand_of(&call->x[2]),
        .y = operand_of(&call->y),
        .dy = operand_of(&call->dy),
        .dq = operand_of(&call->dx[0]),
        .dk = operand_of(&call->dx[1]),
        .dv = operand_of(&call->dx[2]),
        .rows = call->x[0].rows,
        .sequences = (int32_t)call->attributes.attention.sequences,
        .length = (int32_t)length,
        .heads = call->attributes.attention.heads,
        .group = call->attributes.attention.heads / call->attributes.attention.kv_heads,
        .head_dim = call->attributes.attention.head_dim,
        .window = (int32_t)window,
        .ahead = call->attributes.attention.bidirectional ? (int32_t)window : 1,
        .scale = call->attributes.attention.scale,
        .softcap = call->attributes.attention.softcap,
        .threshold = threshold,
        .keep = 65536.0f / (65536.0f - (float)threshold),
        .random_place =
            (uint64_t)(uint32_t)call->attributes.micro_batch << 32 | (uint32_t)call->attributes.op,
        .step = call->step,
    };
    char *scratch = call->scratch, *distances = scratch + range_bytes(call);
    if (call->saved[0].dtype != BASE_NONE)
        a.log_sums = call->saved[0].data, a.log_sum_stride = call->saved[0].stride;
    if (has(&call->x[3])) {
        a.segments = call->x[3].data, a.segment_stride = call->x[3].stride;
        a.ranges = (int32_t *)(void *)scratch, a.spans = (int32_t)spans_of(call);
    }
    if (places_of(call) > 0) {
        a.places = (int32_t)places_of(call), a.rows_of = (int32_t *)(void *)distances;
        a.buckets = call->attributes.attention.buckets;
        a.most_distance = call->attributes.attention.most_distance;
        a.position_keys = operand_of(&call->x[KEYS]);
        a.position_queries = operand_of(&call->x[QUERIES]);
        a.dposition_keys = operand_of(&call->dx[KEYS]);
        a.dposition_queries = operand_of(&call->dx[QUERIES]);
    }
    if (call->kernel == DEVICE_ATTENTION_BACKWARD)
        a.delta = (float *)(void *)(distances + distance_bytes(call));
    return a;
}

static sifr_status launch(device *dev, const attention_arguments *a, cuda_kernel kernel,
                          int64_t blocks, uint32_t threads, uint32_t shared, sifr_error *error) {
    cuda_launch launch = {.kernel = kernel,
                          .blocks = {blocks, 1, 1},
                          .threads = threads,
                          .shared_bytes = shared,
                          .arguments = a};
    return cuda_launch_kernel(dev, &launch, error);
}

static int64_t tiles_of(int64_t rows, int64_t each) {
    return (rows + each - 1) / each;
}

/* What kernels look up. */
static sifr_status run_before(device *dev, const device_call *call, const attention_arguments *a,
                              sifr_error *error) {
    int64_t spans = a->sequences * (int64_t)a->spans;
    if (a->segments != NULL)
        BASE_TRY(launch(dev, a, cuda_kernel_attention_ranges, tiles_of(spans, ATTENTION_THREADS),
                        ATTENTION_THREADS, 0, error));
    if (a->places > 0)
        return launch(dev, a, cuda_kernel_attention_distances,
                      tiles_of(distances_of(call), ATTENTION_THREADS), ATTENTION_THREADS, 0, error);
    return SIFR_OK;
}

static sifr_status run_backward(device *dev, const attention_kernels *k,
                                const attention_arguments *a, sifr_error *error) {
    int64_t tiles = a->sequences * tiles_of(a->length, k->backward_rows), heads = a->heads;
    uint32_t shared = k->backward_shared;
    BASE_TRY(launch(dev, a, k->delta, tiles_of(a->rows * heads, ATTENTION_THREADS / 32),
                    ATTENTION_THREADS, 0, error));
    BASE_TRY(
        launch(dev, a, k->backward_keys, tiles * (heads / a->group), k->threads, shared, error));
    BASE_TRY(launch(dev, a, k->backward_queries, tiles * heads, k->threads, shared, error));
    if (a->dposition_keys.data == NULL && a->dposition_queries.data == NULL) return SIFR_OK;
    return launch(dev, a, k->tables, heads * tiles_of(a->places, k->backward_rows), k->threads,
                  shared, error);
}

sifr_status cuda_run_attention(device *dev, const device_call *call, sifr_error *error) {
    const attention_kernels *k = kernels_of(call);
    attention_arguments a = arguments_of(call);
    BASE_TRY(run_before(dev, call, &a, error));
    if (call->kernel == DEVICE_ATTENTION_BACKWARD) return run_backward(dev, k, &a, error);
    int64_t blocks = (int64_t)a.sequences * a.heads * tiles_of(a.length, k->rows);
    return launch(dev, &a, k->forward, blocks, k->threads, k->shared, error);
}
