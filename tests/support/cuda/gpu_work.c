#include "support/cuda/gpu_work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"

#define PRODUCT(name, rows, in, out)                                                               \
    { name, rows, in, out, 0, 0, 0, 0 }
#define ATTENTION(name, rows, heads, kv_heads, widths, length)                                     \
    { name, rows, 0, 0, heads, kv_heads, widths, length }

static const gpu_shape large_shapes[] = {
    PRODUCT("GPT-2 124M, q k v", 8192, 768, 2304),
    PRODUCT("GPT-2 124M, MLP up", 8192, 768, 3072),
    PRODUCT("GPT-2 124M, MLP down", 8192, 3072, 768),
    ATTENTION("GPT-2 124M", 8192, 12, 12, 64, 1024),
    PRODUCT("Qwen 0.5B, MLP up", 8192, 896, 4864),
    PRODUCT("Qwen 0.5B, MLP down", 8192, 4864, 896),
    ATTENTION("Qwen 0.5B", 8192, 14, 2, 64, 2048),
    PRODUCT("Llama 1B, q", 8192, 2048, 2048),
    PRODUCT("Llama 1B, k v", 8192, 2048, 512),
    PRODUCT("Llama 1B, MLP up", 8192, 2048, 8192),
    PRODUCT("Llama 1B, MLP down", 8192, 8192, 2048),
    ATTENTION("Llama 1B", 8192, 32, 8, 64, 2048),
    PRODUCT("Llama 8B, MLP up", 4096, 4096, 14336),
    ATTENTION("Llama 8B", 8192, 32, 8, 128, 4096),
    ATTENTION("Gemma 2 2B", 8192, 8, 4, 256, 4096),
};

static const gpu_shape small_shapes[] = {
    PRODUCT("small", 65, 40, 72),
    ATTENTION("small", 70, 2, 1, 24, 35),
};

const gpu_shape *gpu_shapes(bool small, size_t *count) {
    *count = small ? sizeof small_shapes / sizeof *small_shapes
                   : sizeof large_shapes / sizeof *large_shapes;
    return small ? small_shapes : large_shapes;
}

/* The next place in the block, behind what is there. */
static device_matrix next(gpu_work *w, int64_t rows, int64_t columns, base_dtype type) {
    device_matrix m = {(void *)(uintptr_t)w->bytes, rows, columns, columns, type};
    w->bytes += (rows * columns * base_dtype_bytes(type) + 255) / 256 * 256;
    return m;
}

static void plan_product(gpu_work *w, const gpu_shape *s, base_dtype type) {
    device_call *forward = &w->calls[GPU_FORWARD], *backward = &w->calls[GPU_BACKWARD];
    forward->kernel = DEVICE_LINEAR, backward->kernel = DEVICE_LINEAR_BACKWARD;
    forward->x[0] = backward->x[0] = next(w, s->rows, s->in, type);
    forward->w[0] = backward->w[0] = next(w, s->out, s->in, type);
    backward->dy = next(w, s->rows, s->out, type);
    w->results = w->bytes;
    forward->y = next(w, s->rows, s->out, type);
    backward->dx[0] = next(w, s->rows, s->in, type);
    backward->dw[0] = next(w, s->out, s->in, BASE_FP32);
    w->operations[GPU_FORWARD] = 2.0 * (double)s->rows * (double)s->in * (double)s->out;
    w->operations[GPU_BACKWARD] = 2 * w->operations[GPU_FORWARD];
}

/* The half of the scores that causal attention needs counts. */
static void plan_attention(gpu_work *w, const gpu_shape *s, base_dtype type) {
    device_call *forward = &w->calls[GPU_FORWARD], *backward = &w->calls[GPU_BACKWARD];
    int64_t width = (int64_t)s->heads * s->widths, kv_width = (int64_t)s->kv_heads * s->widths;
    forward->kernel = DEVICE_ATTENTION;
    forward->attributes.attention.heads = s->heads;
    forward->attributes.attention.kv_heads = s->kv_heads;
    forward->attributes.attention.head_dim = s->widths;
    forward->attributes.attention.sequences = s->rows / s->length;
    forward->attributes.attention.length = s->length;
    forward->attributes.attention.scale = 1 / sqrtf((float)s->widths);
    for (int i = 0; i < 3; i++) forward->x[i] = next(w, s->rows, i ? kv_width : width, type);
    device_matrix dy = next(w, s->rows, width, type);
    w->results = w->bytes;
    forward->y = next(w, s->rows, width, type);
    forward->saved[0] = next(w, s->heads, s->rows, BASE_FP32);
    *backward = *forward;
    backward->kernel = DEVICE_ATTENTION_BACKWARD;
    backward->dy = dy;
    for (int i = 0; i < 3; i++) backward->dx[i] = next(w, s->rows, i ? kv_width : width, type);
    w->operations[GPU_FORWARD] =
        2.0 * (double)s->rows * (double)(s->length + 1) * (double)s->heads * (double)s->widths;
    w->operations[GPU_BACKWARD] = 2.5 * w->operations[GPU_FORWARD];
}

static void move(device_matrix *m, char *block) {
    if (m->dtype != BASE_NONE) m->data = block + (uintptr_t)m->data;
}

/* Offsets become addresses. */
static void move_call(device_call *call, char *block, void *scratch) {
    for (int i = 0; i < DEVICE_INPUTS; i++) move(&call->x[i], block), move(&call->dx[i], block);
    for (int i = 0; i < DEVICE_WEIGHTS; i++) move(&call->w[i], block), move(&call->dw[i], block);
    for (int i = 0; i < DEVICE_SAVED; i++) move(&call->saved[i], block);
    move(&call->y, block);
    move(&call->dy, block);
    call->scratch = scratch;
}

/* Numbers of both signs below 1 in size, in all of the inputs. */
static sifr_status fill(gpu_work *w, base_dtype type, uint32_t seed, sifr_error *error) {
    void *values;
    BASE_TRY(base_alloc((size_t)w->results, 1, &values, error));
    uint32_t state = seed * 2654435761u + 12345, bits;
    int64_t count = w->results / base_dtype_bytes(type);
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        float value = (float)(int32_t)state * 0x1p-31f;
        memcpy(&bits, &value, sizeof bits);
        if (type == BASE_BF16)
            ((uint16_t *)values)[i] = (uint16_t)(bits >> 16);
        else
            ((uint32_t *)values)[i] = bits;
    }
    sifr_status status = device_copy(w->dev, w->block, values, w->results, error);
    free(values);
    return status;
}

sifr_status gpu_work_open(gpu_work *w, device *dev, const gpu_shape *shape, base_dtype type,
                          uint32_t seed, sifr_error *error) {
    static const device_step step = {.seed = 7, .gradient_scale = 1, .training = true};
    void *block;
    *w = (gpu_work){.dev = dev};
    device_matrix numbers = next(w, 1, sizeof step / 4 + 1, BASE_FP32);
    if (shape->heads)
        plan_attention(w, shape, type);
    else
        plan_product(w, shape, type);
    w->result_bytes = w->bytes - w->results;
    int64_t scratch = w->bytes, most = 0;
    for (int part = 0; part < GPU_PARTS; part++) {
        BASE_TRY(device_prepare(dev, &w->calls[part], error));
        if (w->calls[part].scratch_bytes > most) most = w->calls[part].scratch_bytes;
    }
    w->bytes += most + 256;
    BASE_TRY(device_take(dev, w->bytes, &block, error));
    w->block = block;
    for (int part = 0; part < GPU_PARTS; part++)
        move_call(&w->calls[part], w->block, w->block + scratch);
    move(&numbers, w->block);
    for (int part = 0; part < GPU_PARTS; part++) w->calls[part].step = numbers.data;
    BASE_TRY(fill(w, type, seed, error));
    return device_copy(dev, numbers.data, &step, sizeof step, error);
}

void gpu_work_close(gpu_work *w) {
    if (w->block) device_give(w->dev, w->block, w->bytes);
    w->block = NULL;
}

sifr_status gpu_work_run(gpu_work *w, gpu_part part, sifr_error *error) {
    return device_run(w->dev, &w->calls[part], error);
}

sifr_status gpu_work_clear(gpu_work *w, sifr_error *error) {
    int64_t count = w->result_bytes / 4;
    device_call call = {.kernel = DEVICE_CLEAR,
                        .y = {w->block + w->results, 1, count, count, BASE_FP32}};
    BASE_TRY(device_prepare(w->dev, &call, error));
    return device_run(w->dev, &call, error);
}

sifr_status gpu_work_finish(gpu_work *w, void *to, sifr_error *error) {
    char one;
    return to ? device_copy(w->dev, to, w->block + w->results, w->result_bytes, error)
              : device_copy(w->dev, &one, w->block, 1, error);
}

enum { TURNS = 3 };

sifr_status gpu_work_time(gpu_work *w, gpu_part part, double enough, double *seconds,
                          sifr_error *error) {
    int runs = 1;
    *seconds = 1e30;
    for (int turn = -1; turn < TURNS;) { /* the first one warms up, and says how many runs */
        BASE_TRY(gpu_work_finish(w, NULL, error));
        double start = base_seconds();
        for (int i = 0; i < runs; i++) BASE_TRY(gpu_work_run(w, part, error));
        BASE_TRY(gpu_work_finish(w, NULL, error));
        double took = base_seconds() - start;
        if (turn < 0 && took < enough && runs < 1000) {
            runs *= 2;
            continue;
        }
        if (turn++ >= 0 && took / runs < *seconds) *seconds = took / runs;
    }
    return SIFR_OK;
}
