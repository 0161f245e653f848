/* Attention calls cut into tiles: a block of queries of a head forward, a kv head backward. */
#include "device/cpu/attention.h"

#include <string.h>

#include "base/checked.h"
#include "device/cpu/attention_run.h"

static const attention_kernels *kernels_of(const device *dev) {
    if (!strcmp(dev->isa, "avx512")) return &attention_kernels_avx512;
    if (!strcmp(dev->isa, "avx2")) return &attention_kernels_avx2;
    return &attention_kernels_plain;
}

int64_t attention_floats(const device_call *call) {
    const device_attributes *a = &call->attributes;
    int64_t width = base_ceil_to(a->attention.head_dim, 16), block = ATTENTION_BLOCK;
    int64_t rows = base_ceil_to(a->attention.length, block);
    switch (call->kernel) {
    case DEVICE_ATTENTION:
        return 3 * width * block + block * block;
    case DEVICE_ATTENTION_BACKWARD:
        return 2 * width * block + 7 * rows * width + 3 * block * block + 2 * rows;
    default:
        return base_ceil_to(a->attention.length + 3 * width, 16);
    }
}

sifr_status attention_prepare(device *dev, device_call *call, sifr_error *error) {
    const device_attributes *a = &call->attributes;
    bool cached = call->kernel == DEVICE_ATTENTION_CACHED;
    int64_t q = (int64_t)a->attention.heads * a->attention.head_dim;
    int64_t kv = (int64_t)a->attention.kv_heads * a->attention.head_dim;
    int64_t rows = call->x[0].rows;
    bool fits = call->x[0].columns == q && call->x[1].columns == kv && call->x[2].columns == kv &&
                (cached || rows == a->attention.sequences * a->attention.length);
    if (!fits) {
        return base_fail(error, SIFR_USAGE, "kernel %s: operands do not fit %d heads of %d",
                         device_kernel_name(call->kernel), a->attention.heads,
                         a->attention.head_dim);
    }
    call->scratch_bytes = device_threads(dev) * attention_floats(call) * 4;
    return SIFR_OK;
}

typedef struct attention_job {
    const device_call *call;
    void (*kernel)(const attention_tile *tile);
    int64_t heads, blocks, floats;
} attention_job;

static void run_tile(void *argument, int64_t index, int thread) {
    const attention_job *job = argument;
    /* The last blocks have the most keys: they come first, so that no thread ends late. */
    int64_t per_sequence = job->heads * job->blocks;
    attention_tile tile = {.call = job->call,
                           .sequence = index / per_sequence,
                           .head = index % per_sequence / job->blocks,
                           .block = job->blocks - 1 - index % job->blocks,
                           .scratch = (float *)job->call->scratch + thread * job->floats};
    job->kernel(&tile);
}

sifr_status attention_run(device *dev, const device_call *call, sifr_error *error) {
    const device_attributes *a = &call->attributes;
    const attention_kernels *kernels = kernels_of(dev);
    attention_job job = {.call = call, .floats = attention_floats(call), .blocks = 1};
    int64_t sequences = a->attention.sequences;
    (void)error;
    if (call->kernel == DEVICE_ATTENTION) {
        job.kernel = kernels->forward;
        job.heads = a->attention.heads;
        job.blocks = (a->attention.length + ATTENTION_BLOCK - 1) / ATTENTION_BLOCK;
    } else if (call->kernel == DEVICE_ATTENTION_BACKWARD) {
        job.kernel = kernels->backward;
        job.heads = a->attention.kv_heads;
    } else {
        const int32_t *positions = call->x[3].data;
        job.kernel = kernels->cached;
        job.heads = a->attention.heads;
        sequences = 1;
        for (int i = 0; i < 2; i++) { /* the new keys and values join the cache */
            const device_matrix *from = &call->x[1 + i], *to = &call->w[i];
            size_t size = (size_t)device_dtype_bytes(to->dtype);
            for (int64_t r = 0; r < from->rows; r++) {
                memcpy((char *)to->data + (size_t)(positions[r] * to->stride) * size,
                       (const char *)from->data + (size_t)(r * from->stride) * size,
                       (size_t)to->columns * size);
            }
        }
    }
    cpu_parallel(dev->team, sequences * job.heads * job.blocks, run_tile, &job);
    return SIFR_OK;
}
