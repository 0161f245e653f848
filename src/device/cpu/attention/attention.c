#include "device/cpu/attention/attention.h"

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "device/alibi.h"
#include "device/check/operands.h"
#include "device/cpu/attention/attention_positions.h"
#include "device/cpu/attention/kernels_attention.h"
#include "device/cpu/product/kernels_matrix.h"

/* With fewer kv heads in total, tiles of the forward pass are single query heads. */
enum { FEW_HEADS = 16 };

static const void *element(const device_matrix *m, int64_t row, int64_t column) {
    return (const char *)m->data + (row * m->stride + column) * base_dtype_bytes(m->dtype);
}

static void *writable(const device_matrix *m, int64_t row, int64_t column) {
    return (void *)(uintptr_t)element(m, row, column);
}

/* The window, or one that covers all keys if there is none. */
static int64_t window_of(const device_call *call) {
    int64_t window = call->attributes.attention.window, all = call->attributes.attention.length;
    return window > 0 ? base_min_i64(window, all) : all;
}

static int64_t kernel_floats(const device *dev, const device_call *call) {
    const cpu_attention_kernels *kernels = cpu_of(dev)->set->attention;
    int64_t keys = call->attributes.attention.length;
    int64_t width = call->attributes.attention.head_dim;
    int64_t places = cpu_position_places(call);
    int64_t floats = call->kernel == DEVICE_ATTENTION_BACKWARD
                         ? kernels->backward_floats(call->x[0].dtype, keys, width, places)
                         : kernels->forward_floats(call->x[0].dtype, keys, width, places);
    return base_ceil_to(floats, 16);
}

sifr_status cpu_prepare_attention(device *dev, device_call *call, sifr_error *error) {
    (void)error;
    int64_t shared = cpu_position_floats(call) + cpu_position_sums(call);
    call->scratch_bytes = (kernel_floats(dev, call) * device_threads(dev) + shared) * 4;
    return SIFR_OK;
}

typedef struct attention_run {
    const device_call *call;
    const cpu_attention_kernels *kernels;
    const cpu_matrix_kernels *matrix;
    int64_t floats; /* of scratch, per thread */
    int64_t group;  /* query heads in a tile */
    int64_t start;  /* cached, of one sequence: position of the first new row */
    /* of relative positions, if there are any, behind the threads' scratch */
    int32_t *rows_of;
    float *sums;
    uint64_t random_key;
} attention_run;

/* The place of a head in all heads of the micro batch. */
static uint32_t random_head(const device_call *call, int64_t sequence, int64_t head) {
    const device_attention_attributes *a = &call->attributes.attention;
    int64_t heads = a->whole_heads ? a->whole_heads : a->heads;
    return (uint32_t)(sequence * heads + a->first_head + head);
}

/* Rows of q that a sequence has. */
static int64_t query_rows(const device_call *call) {
    return call->x[0].rows / call->attributes.attention.sequences;
}

/* Where the queries of a context rank stand, and the last key that they see. */
static void place_runs(const device_call *call, cpu_attention *a) {
    const device_attention_attributes *of = &call->attributes.attention;
    int64_t from, behind = device_attention_run(of, 1);
    a->run = a->queries / 2;
    a->first = device_attention_run(of, 0);
    a->apart = behind - a->first - a->run;
    device_attention_reach(of, behind, a->run, &from, &a->keys);
}

/* The fields that are equal for keys from the call and from a cache. */
static cpu_attention describe_tile(const attention_run *run, int64_t sequence, int64_t head,
                                   int thread) {
    const device_call *call = run->call;
    int64_t width = call->attributes.attention.head_dim;
    int64_t length = call->attributes.attention.length, queries = query_rows(call);
    int64_t row = sequence * queries;
    bool dropping = call->attributes.attention.dropout > 0 && call->step->training;
    cpu_attention a = {.dtype = call->x[0].dtype,
                       .queries = queries,
                       .run = queries,
                       .keys = length,
                       .head_dim = width,
                       .group = run->group,
                       .window = window_of(call),
                       .ahead = call->attributes.attention.bidirectional ? window_of(call) : 1,
                       .scale = call->attributes.attention.scale,
                       .softcap = call->attributes.attention.softcap,
                       .alibi = call->attributes.attention.alibi / call->attributes.attention.scale,
                       .slopes = call->attributes.attention.alibi_heads,
                       .first_slope = call->attributes.attention.alibi_first + head,
                       .dropout = dropping ? call->attributes.attention.dropout : 0.0f,
                       .random_key = run->random_key,
                       .random_head = random_head(call, sequence, head),
                       .q = element(&call->x[0], row, head * width),
                       .q_stride = call->x[0].stride,
                       .y = writable(&call->y, row, head * width),
                       .y_stride = call->y.stride,
                       .dk_dtype = call->dx[1].dtype,
                       .dv_dtype = call->dx[2].dtype,
                       .scratch = (float *)call->scratch + thread * run->floats};
    if (call->saved[0].dtype != BASE_NONE) {
        a.log_sums = (float *)writable(&call->saved[0], head, row);
        a.log_sum_stride = call->saved[0].stride;
    }
    if (call->attributes.attention.contexts > 0) place_runs(call, &a);
    return a;
}

/* A sequence's query heads from `head` on; `sums`: the group of sequences that it is of. */
static void attend(const attention_run *run, int64_t sequence, int64_t head, int64_t sums,
                   int thread) {
    const device_call *call = run->call;
    int64_t heads = call->attributes.attention.heads, width = call->attributes.attention.head_dim;
    int64_t kv = head / (heads / call->attributes.attention.kv_heads) * width;
    int64_t row = sequence * query_rows(call);
    int64_t key = sequence * call->attributes.attention.length;
    cpu_attention a = describe_tile(run, sequence, head, thread);
    a.k = element(&call->x[1], key, kv), a.k_stride = call->x[1].stride;
    a.v = element(&call->x[2], key, kv), a.v_stride = call->x[2].stride;
    if (call->x[3].dtype != BASE_NONE)
        a.segments = element(&call->x[3], key, 0), a.segment_stride = call->x[3].stride;
    if (run->rows_of != NULL) {
        a.rows_of = run->rows_of;
        cpu_position_tile(call, head, sums, run->sums, &a);
    }
    if (call->kernel == DEVICE_ATTENTION) {
        run->kernels->forward(&a);
        return;
    }
    a.dy = element(&call->dy, row, head * width), a.dy_stride = call->dy.stride;
    a.dq = writable(&call->dx[0], row, head * width), a.dq_stride = call->dx[0].stride;
    a.dk = writable(&call->dx[1], key, kv), a.dk_stride = call->dx[1].stride;
    a.dv = writable(&call->dx[2], key, kv), a.dv_stride = call->dx[2].stride;
    run->kernels->backward(&a);
}

static void attention_task(void *context, int64_t task, int thread) {
    const attention_run *run = context;
    int64_t tiles = run->call->attributes.attention.heads / run->group;
    attend(run, task / tiles, task % tiles * run->group, 0, thread);
}

/* Backward with relative positions: a head through the sequences of a group, in order. */
static void positions_task(void *context, int64_t task, int thread) {
    const attention_run *run = context;
    const device_call *call = run->call;
    int64_t heads = call->attributes.attention.heads, head = task % heads, group = task / heads;
    int64_t sequences = call->attributes.attention.sequences, groups = cpu_position_groups(call);
    cpu_position_clear(call, head, group, run->sums);
    for (int64_t s = group * sequences / groups; s < (group + 1) * sequences / groups; s++)
        attend(run, s, head, group, thread);
}

static void run_positions_backward(device *dev, attention_run *run) {
    const device_call *call = run->call;
    run->sums = (float *)(void *)run->rows_of + cpu_position_floats(call);
    host_parallel(dev->team, cpu_position_groups(call) * call->attributes.attention.heads,
                  positions_task, run);
    cpu_position_finish(dev, call, run->sums);
}

sifr_status cpu_run_attention(device *dev, const device_call *call, sifr_error *error) {
    (void)error;
    int64_t heads = call->attributes.attention.heads, kv = call->attributes.attention.kv_heads;
    int64_t sequences = call->attributes.attention.sequences;
    int64_t all = call->attributes.attention.all_kv_heads;
    attention_run run = {.call = call,
                         .kernels = cpu_of(dev)->set->attention,
                         .floats = kernel_floats(dev, call),
                         .group = heads / kv};
    if (call->attributes.attention.dropout > 0)
        run.random_key = base_random_key(call->step->seed, (uint64_t)call->step->step,
                                         (uint64_t)(uint32_t)call->attributes.micro_batch << 32 |
                                             (uint32_t)call->attributes.op);
    if (cpu_position_places(call) > 0) {
        float *behind = (float *)call->scratch + run.floats * device_threads(dev);
        run.rows_of = (int32_t *)(void *)behind;
        cpu_position_rows(call, run.rows_of);
        if (call->kernel == DEVICE_ATTENTION_BACKWARD) {
            run_positions_backward(dev, &run);
            return SIFR_OK;
        }
    }
    if (call->kernel == DEVICE_ATTENTION && sequences * (all > 0 ? all : kv) < FEW_HEADS)
        run.group = 1;
    host_parallel(dev->team, sequences * (heads / run.group), attention_task, &run);
    return SIFR_OK;
}

/* Cached: few new rows run row by row over ranges of keys, many rows run as blocks of queries. */
enum { FEW_ROWS = 8, KEY_RANGE = 1024 };

static int64_t range_count(const device_call *call) {
    return (call->attributes.attention.length + KEY_RANGE - 1) / KEY_RANGE;
}

static bool takes_ranges(const device_call *call) {
    return call->x[0].rows < FEW_ROWS || call->attributes.attention.sequences > 1;
}

sifr_status cpu_prepare_attention_cached(device *dev, device_call *call, sifr_error *error) {
    int64_t rows = call->x[0].rows, width = call->attributes.attention.head_dim;
    (void)error;
    int64_t few = rows * call->attributes.attention.heads * range_count(call) * (width + 2) +
                  KEY_RANGE * device_threads(dev);
    int64_t many = kernel_floats(dev, call) * device_threads(dev);
    call->scratch_bytes = base_ceil_to((takes_ranges(call) ? few : many) * 4, 64);
    return SIFR_OK;
}

static int64_t range_floats(const device_call *call) {
    return call->x[0].rows * call->attributes.attention.heads * range_count(call) *
           (call->attributes.attention.head_dim + 2);
}

static float *range_out(const device_call *call, int64_t row, int64_t head, int64_t range) {
    int64_t at = (row * call->attributes.attention.heads + head) * range_count(call) + range;
    return (float *)call->scratch + at * (call->attributes.attention.head_dim + 2);
}

static void write_values(const attention_run *run, int64_t row, int64_t column, int64_t count,
                         const float *values) {
    const device_matrix *y = &run->call->y;
    if (y->dtype == BASE_FP32)
        memcpy(writable(y, row, column), values, (size_t)count * 4);
    else
        run->matrix->narrow(y->dtype, values, writable(y, row, column), count, false);
}

static int64_t position_of(const attention_run *run, int64_t row) {
    const int32_t *positions = run->call->x[3].data;
    if (run->call->attributes.attention.sequences == 1) return run->start + row;
    return positions[row * run->call->x[3].stride];
}

/* Where the cache of a row's sequence begins. */
static int64_t cache_of(const device_call *call, int64_t row) {
    return call->attributes.attention.sequences == 1 ? 0 : row * call->attributes.attention.length;
}

/* The first position that a row sees. */
static int64_t first_seen(const attention_run *run, int64_t row) {
    return base_max_i64(0, position_of(run, row) - window_of(run->call) + 1);
}

/* Combines the ranges of a row and head, in order, into the first one's place. */
static void combine_task(void *context, int64_t task, int thread) {
    (void)thread;
    const attention_run *run = context;
    const device_call *call = run->call;
    int64_t heads = call->attributes.attention.heads, width = call->attributes.attention.head_dim;
    int64_t row = task / heads, head = task % heads;
    int64_t begin = first_seen(run, row) / KEY_RANGE,
            ranges = position_of(run, row) / KEY_RANGE + 1;
    float *first = range_out(call, row, head, begin), most = first[0];
    for (int64_t i = begin + 1; i < ranges; i++)
        most = fmaxf(most, range_out(call, row, head, i)[0]);
    float factor = expf(first[0] - most), total = first[1] * factor;
    for (int64_t c = 0; c < width; c++) first[2 + c] *= factor;
    for (int64_t i = begin + 1; i < ranges; i++) {
        const float *part = range_out(call, row, head, i);
        factor = expf(part[0] - most);
        total += part[1] * factor;
        for (int64_t c = 0; c < width; c++) first[2 + c] += part[2 + c] * factor;
    }
    for (int64_t c = 0; c < width; c++) first[2 + c] /= total;
    write_values(run, row, head * width, width, first + 2);
}

/* Of a bias by distance. */
static float slope_of(const device_call *call, int64_t head) {
    const device_attention_attributes *a = &call->attributes.attention;
    if (!(a->alibi > 0)) return 0;
    return a->alibi * (float)device_alibi_slope(a->alibi_heads, a->alibi_first + head);
}

static void range_task(void *context, int64_t task, int thread) {
    const attention_run *run = context;
    const device_call *call = run->call;
    int64_t heads = call->attributes.attention.heads, width = call->attributes.attention.head_dim;
    int64_t ranges = range_count(call), range = task % ranges, head = task / ranges % heads;
    int64_t row = task / ranges / heads;
    int64_t first = base_max_i64(range * KEY_RANGE, first_seen(run, row));
    int64_t kv = head / (heads / call->attributes.attention.kv_heads) * width;
    int64_t keys = base_min_i64((range + 1) * KEY_RANGE, position_of(run, row) + 1) - first;
    if (keys <= 0) return;
    int64_t place = cache_of(call, row) + first;
    cpu_attention_range r = {.dtype = call->x[0].dtype,
                             .keys = keys,
                             .head_dim = width,
                             .k_stride = call->w[0].stride,
                             .v_stride = call->w[1].stride,
                             .scale = call->attributes.attention.scale,
                             .softcap = call->attributes.attention.softcap,
                             .slope = slope_of(call, head),
                             .from = first - position_of(run, row),
                             .q = element(&call->x[0], row, head * width),
                             .k = element(&call->w[0], place, kv),
                             .v = element(&call->w[1], place, kv),
                             .out = range_out(call, row, head, range),
                             .scores =
                                 (float *)call->scratch + range_floats(call) + thread * KEY_RANGE};
    run->kernels->range(&r);
    if (ranges == 1) combine_task(context, row * heads + head, thread);
}

static void cached_block_task(void *context, int64_t head, int thread) {
    const attention_run *run = context;
    const device_call *call = run->call;
    int64_t heads = call->attributes.attention.heads, width = call->attributes.attention.head_dim;
    int64_t kv = head / (heads / call->attributes.attention.kv_heads) * width;
    cpu_attention a = describe_tile(run, 0, head, thread);
    int64_t first = first_seen(run, 0);
    a.dropout = 0.0f, a.log_sums = NULL;
    a.queries = a.run = call->x[0].rows, a.keys = run->start + call->x[0].rows - first;
    a.first = a.origin = a.keys - a.queries;
    a.k = element(&call->w[0], first, kv), a.k_stride = call->w[0].stride;
    a.v = element(&call->w[1], first, kv), a.v_stride = call->w[1].stride;
    run->kernels->forward(&a);
}

/* New keys or values into the cache `which`. */
static void append(const attention_run *run, int which, const device_matrix *rows) {
    size_t bytes = (size_t)(rows->columns * base_dtype_bytes(rows->dtype));
    for (int64_t r = 0; r < rows->rows; r++) {
        int64_t place = cache_of(run->call, r) + position_of(run, r);
        memcpy(writable(&run->call->w[which], place, 0), element(rows, r, 0), bytes);
    }
}

static sifr_status check_positions(const device_call *call, sifr_error *error) {
    const int32_t *positions = call->x[3].data;
    int64_t rows = call->x[0].rows, stride = call->x[3].stride;
    int64_t capacity = call->attributes.attention.length, first = positions[0];
    bool together = call->attributes.attention.sequences == 1;
    for (int64_t r = 0; r < rows; r++) {
        int64_t at = positions[r * stride];
        if (at >= 0 && at < capacity && (!together || at == first + r)) continue;
        return base_fail(error, SIFR_FAILED,
                         "%s: position %lld of row %lld: %lld rows from %lld on do not follow each "
                         "other in a cache of %lld",
                         device_kernel_name(call->kernel), (long long)at, (long long)r,
                         (long long)rows, (long long)first, (long long)capacity);
    }
    return SIFR_OK;
}

sifr_status cpu_run_attention_cached(device *dev, const device_call *call, sifr_error *error) {
    int64_t rows = call->x[0].rows, heads = call->attributes.attention.heads;
    const int32_t *positions = call->x[3].data;
    attention_run run = {.call = call,
                         .kernels = cpu_of(dev)->set->attention,
                         .matrix = cpu_of(dev)->set->matrix,
                         .floats = kernel_floats(dev, call),
                         .group = 1,
                         .start = positions[0]};
    BASE_TRY(check_positions(call, error));
    append(&run, 0, &call->x[1]);
    append(&run, 1, &call->x[2]);
    if (!takes_ranges(call)) {
        host_parallel(dev->team, heads, cached_block_task, &run);
        return SIFR_OK;
    }
    host_parallel(dev->team, rows * heads * range_count(call), range_task, &run);
    if (range_count(call) > 1) host_parallel(dev->team, rows * heads, combine_task, &run);
    return SIFR_OK;
}
