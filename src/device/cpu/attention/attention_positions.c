#include "device/cpu/attention/attention_positions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

/* The operands of the tables, for queries and for keys. */
enum { KEYS = 4, QUERIES = 5 };

/* Heads times groups are as many tiles of work, where there are enough sequences. */
enum { FEW_TILES = 64 };

static bool has(const device_matrix *m) {
    return m->dtype != BASE_NONE;
}

int64_t cpu_position_places(const device_call *call) {
    return has(&call->x[KEYS]) ? call->x[KEYS].rows : call->x[QUERIES].rows;
}

int64_t cpu_position_floats(const device_call *call) {
    if (cpu_position_places(call) == 0) return 0;
    int64_t distances = 2 * call->attributes.attention.length - 1;
    return base_ceil_to(distances + CPU_QUERIES_BEHIND, 16);
}

/* A distance itself up to half the buckets; from there on as many buckets again have it by its
 * logarithm, up to `most` - 1. In fp32 and in this order, as PyTorch computes it: the result is
 * rounded up, and exact at the ends. */
static int64_t bucket_of(int64_t distance, int64_t buckets, int64_t most) {
    int64_t middle = buckets / 2, size = llabs((long long)distance);
    if (size <= middle) return distance;
    float whole = logf((float)(most - 1) / (float)middle);
    float part = logf((float)size / (float)middle) / whole * (float)(middle - 1);
    int64_t bucket = (int64_t)ceilf(part) + middle;
    return distance < 0 ? -bucket : bucket;
}

void cpu_position_rows(const device_call *call, int32_t *rows) {
    int64_t length = call->attributes.attention.length, span = cpu_position_places(call) / 2;
    int64_t buckets = call->attributes.attention.buckets;
    int64_t most = call->attributes.attention.most_distance;
    int64_t count = 2 * length - 1 + CPU_QUERIES_BEHIND;
    for (int64_t i = 0; i < count; i++) {
        int64_t distance = base_min_i64(i - (length - 1), length - 1);
        int64_t at = buckets > 0 ? bucket_of(distance, buckets, most) : distance;
        rows[i] = (int32_t)base_min_i64(base_max_i64(at + span, 0), 2 * span - 1);
    }
}

int64_t cpu_position_groups(const device_call *call) {
    int64_t heads = call->attributes.attention.heads;
    return base_min_i64(call->attributes.attention.sequences, (FEW_TILES + heads - 1) / heads);
}

int64_t cpu_position_width(const device_call *call) {
    return base_ceil_to(call->attributes.attention.head_dim, 16);
}

/* Of one table of a head in a group. */
static int64_t table_floats(const device_call *call) {
    return cpu_position_places(call) * cpu_position_width(call);
}

static float *sums_of(const device_call *call, float *sums, int64_t group, int64_t head,
                      int64_t table) {
    int64_t heads = call->attributes.attention.heads;
    return sums + ((group * heads + head) * 2 + table) * table_floats(call);
}

int64_t cpu_position_sums(const device_call *call) {
    if (call->kernel != DEVICE_ATTENTION_BACKWARD) return 0;
    return cpu_position_groups(call) * call->attributes.attention.heads * 2 * table_floats(call);
}

void cpu_position_clear(const device_call *call, int64_t head, int64_t group, float *sums) {
    memset(sums_of(call, sums, group, head, 0), 0, (size_t)(2 * table_floats(call)) * 4);
}

void cpu_position_tile(const device_call *call, int64_t head, int64_t group, float *sums,
                       cpu_attention *a) {
    const device_matrix *keys = &call->x[KEYS], *queries = &call->x[QUERIES];
    int64_t first = head * call->attributes.attention.head_dim;
    first *= base_dtype_bytes(call->x[0].dtype);
    a->places = cpu_position_places(call);
    a->position_keys = has(keys) ? (const char *)keys->data + first : NULL;
    a->position_queries = has(queries) ? (const char *)queries->data + first : NULL;
    a->position_key_stride = keys->stride, a->position_query_stride = queries->stride;
    a->dposition_stride = cpu_position_width(call);
    a->dposition_keys = a->dposition_queries = NULL;
    if (sums == NULL) return;
    if (has(&call->dx[KEYS])) a->dposition_keys = sums_of(call, sums, group, head, 0);
    if (has(&call->dx[QUERIES])) a->dposition_queries = sums_of(call, sums, group, head, 1);
}

typedef struct finish_job {
    const device_call *call;
    const cpu_matrix_kernels *matrix;
    float *sums;
} finish_job;

/* A head's part of one table: the groups' sums into the first one's place, and from there out. */
static void finish_task(void *context, int64_t task, int thread) {
    const finish_job *job = context;
    const device_call *call = job->call;
    int64_t head = task / 2, table = task % 2, count = table_floats(call);
    int64_t d = call->attributes.attention.head_dim, width = cpu_position_width(call);
    const device_matrix *dx = &call->dx[KEYS + table];
    (void)thread;
    if (!has(dx)) return;
    float *total = sums_of(call, job->sums, 0, head, table);
    for (int64_t g = 1; g < cpu_position_groups(call); g++) {
        const float *part = sums_of(call, job->sums, g, head, table);
        for (int64_t i = 0; i < count; i++) total[i] += part[i];
    }
    for (int64_t r = 0; r < dx->rows; r++) {
        char *to = (char *)dx->data + (r * dx->stride + head * d) * base_dtype_bytes(dx->dtype);
        if (dx->dtype == BASE_FP32)
            memcpy(to, total + r * width, (size_t)d * 4);
        else
            job->matrix->narrow(dx->dtype, total + r * width, (uint16_t *)(void *)to, d, false);
    }
}

void cpu_position_finish(device *dev, const device_call *call, float *sums) {
    finish_job job = {.call = call, .matrix = cpu_of(dev)->set->matrix, .sums = sums};
    host_parallel(dev->team, 2 * call->attributes.attention.heads, finish_task, &job);
}
