/* How near the kernels that move memory come to the machine's own bandwidth, measured in the same
 * run: bench_kernels [threads] [isa]. One line a kernel: bytes that it must read and write, over
 * the best of several runs. With one thread the clock is the thread's own, so that neighbours on
 * the machine count less. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/device.h"

enum { ROWS = 4096, WIDTH = 768, WORDS = 50257, HEADS = 12, RUNS = 12 };

static double now(const device *dev) {
    struct timespec t;
    clock_gettime(device_threads(dev) == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct bench {
    device *dev;
    device_limits limits;
    device_step step;
    char *memory; /* every call's operands lie in it, from its start */
    int64_t size;
    sifr_error error;
} bench;

static device_matrix *operand(device_call *call, int i) {
    if (i < 4) return &call->x[i];
    if (i < 6) return &call->w[i - 4];
    if (i < 8) return &call->saved[i - 6];
    if (i == 8) return &call->y;
    if (i == 9) return &call->dy;
    if (i < 14) return &call->dx[i - 10];
    return &call->dw[i - 14];
}

/* Bytes that are read and written: each operand once, `again` of them twice. */
static int place(bench *b, device_call *call, double *bytes) {
    int64_t at = 0;
    *bytes = 0;
    for (int i = 0; i < 16; i++) {
        device_matrix *m = operand(call, i);
        if (m->dtype == BASE_NONE) continue;
        int64_t size = m->rows * m->columns * base_dtype_bytes(m->dtype);
        m->data = b->memory + at;
        at += (size + 4095) / 4096 * 4096;
        bool read_and_written = call->kernel == DEVICE_ADAM && (i == 4 || i == 6 || i == 7);
        read_and_written |=
            i == 8 && (call->kernel == DEVICE_ADD_INTO || call->kernel == DEVICE_ACCUMULATE);
        read_and_written |= i >= 14 && call->accumulate_dw;
        *bytes += (double)size * (read_and_written ? 2 : 1);
        if (m->dtype == BASE_INT32) {
            for (int64_t r = 0; r < m->rows; r++)
                ((int32_t *)m->data)[r] = (int32_t)(r * 7919 % (call->w[0].rows ? WORDS : 1024));
        }
    }
    call->step = &b->step;
    if (at > b->size || device_prepare(b->dev, call, &b->error) != SIFR_OK) return 1;
    call->scratch = b->memory + at;
    return at + call->scratch_bytes > b->size;
}

static int refuse(const bench *b, const char *name) {
    fprintf(stderr, "bench_kernels: %s: %s\n", name, b->error.message);
    return 1;
}

static int measure_placed(bench *b, const char *name, const device_call *call, double bytes,
                          double count, const char *unit) {
    double best = 1e30;
    for (int run = 0; run < RUNS; run++) {
        double start = now(b->dev);
        if (device_run(b->dev, call, &b->error) != SIFR_OK) return 1;
        double seconds = now(b->dev) - start;
        if (seconds < best) best = seconds;
    }
    printf("%-34s %9.3f ms %8.1f GB/s %6.1f%% %8.2f G%s/s\n", name, best * 1e3, bytes / best * 1e-9,
           100 * bytes / best / b->limits.bytes, count / best * 1e-9, unit);
    return 0;
}

static int measure(bench *b, const char *name, device_call call, double count, const char *unit) {
    double bytes;
    if (place(b, &call, &bytes)) return refuse(b, name);
    return measure_placed(b, name, &call, bytes, count, unit);
}

static device_matrix sized(int64_t rows, int64_t columns, base_dtype dtype) {
    return (device_matrix){NULL, rows, columns, columns, dtype};
}

/* Its time depends on how far exponents are apart. */
static int measure_exact(bench *b, int64_t count) {
    double bytes;
    device_call call = {.kernel = DEVICE_EXACT_SQUARES,
                        .x = {sized(1, count, BASE_FP32)},
                        .y = sized(1, EXACT_WORDS, BASE_INT64)};
    if (place(b, &call, &bytes)) return refuse(b, "exact_squares");
    for (int64_t i = 0; i < count; i++)
        ((float *)call.x[0].data)[i] = (float)((uint32_t)i * 2654435761u >> 8) * 0x1p-24f - 0.5f;
    memset(call.y.data, 0, sizeof(base_exact_sum));
    return measure_placed(b, "exact_squares", &call, bytes, (double)count, "elements");
}

static int measure_flat(bench *b) {
    enum { COUNT = 1 << 24 };
    device_matrix fp32 = sized(1, COUNT, BASE_FP32), bf16 = sized(1, COUNT, BASE_BF16);
    device_call adam = {.kernel = DEVICE_ADAM, .x = {fp32}, .w = {fp32}, .saved = {fp32, fp32}};
    b->step.beta1 = 0.9f;
    b->step.beta2 = 0.95f;
    adam.attributes.update.epsilon = 1e-8f;
    adam.attributes.update.lr_scale = 1.0f;
    adam.attributes.update.weight_decay = 0.1f;
    adam.attributes.update.decoupled = true;
    int bad = measure(b, "adam fp32", adam, COUNT, "elements");
    adam.w[1] = bf16;
    bad |= measure(b, "adam with bf16 copy", adam, COUNT, "elements");
    adam.x[0] = bf16; /* states in bf16, too */
    adam.saved[0] = adam.saved[1] = bf16;
    bad |= measure(b, "adam with bf16 moments", adam, COUNT, "elements");
    adam.w[0] = bf16;
    adam.w[1] = (device_matrix){0};
    bad |= measure(b, "adam without fp32 masters", adam, COUNT, "elements");
    bad |= measure(b, "add_into", (device_call){.kernel = DEVICE_ADD_INTO, .x = {fp32}, .y = fp32},
                   COUNT, "elements");
    bad |= measure_exact(b, COUNT);
    bad |=
        measure(b, "convert fp32 to bf16",
                (device_call){.kernel = DEVICE_CONVERT, .x = {fp32}, .y = bf16}, COUNT, "elements");
    return bad | measure(b, "clear fp32", (device_call){.kernel = DEVICE_CLEAR, .y = fp32}, COUNT,
                         "elements");
}

static int measure_rows(bench *b, base_dtype type) {
    device_matrix rows = sized(ROWS, WIDTH, type), wide = sized(ROWS, 4 * WIDTH, type);
    device_matrix weight = sized(1, WIDTH, type), gradient = sized(1, WIDTH, BASE_FP32);
    device_matrix ids = sized(ROWS, 1, BASE_INT32), one = sized(ROWS, 1, BASE_FP32);
    device_matrix two = sized(ROWS, 2, BASE_FP32), table = sized(1024, 64, BASE_FP32);
    device_matrix words = sized(WORDS, WIDTH, type), dwords = sized(WORDS, WIDTH, BASE_FP32);
    device_call rope = {.kernel = DEVICE_ROPE, .x = {rows, ids, table}, .y = rows};
    rope.attributes.rope.heads = HEADS;
    rope.attributes.rope.head_dim = WIDTH / HEADS;
    device_call dropout = {.kernel = DEVICE_DROPOUT, .x = {rows}, .y = rows};
    dropout.attributes.dropout.probability = 0.1f;
    device_call erf = {.kernel = DEVICE_GELU, .x = {wide}, .y = wide};
    erf.attributes.gelu.exact = true;
    struct {
        const char *name;
        device_call call;
    } calls[] = {
        {"layer_norm",
         {DEVICE_LAYER_NORM, .x = {rows}, .w = {weight, weight}, .y = rows, .saved = {two}}},
        {"layer_norm_backward",
         {DEVICE_LAYER_NORM_BACKWARD, .x = {rows}, .w = {weight}, .saved = {two}, .dy = rows,
          .dx = {rows}, .dw = {gradient, gradient}}},
        {"rms_norm", {DEVICE_RMS_NORM, .x = {rows}, .w = {weight}, .y = rows, .saved = {one}}},
        {"rms_norm_backward",
         {DEVICE_RMS_NORM_BACKWARD, .x = {rows}, .w = {weight}, .saved = {one}, .dy = rows,
          .dx = {rows}, .dw = {gradient}}},
        {"rope", rope},
        {"gelu", {DEVICE_GELU, .x = {wide}, .y = wide}},
        {"gelu_backward", {DEVICE_GELU_BACKWARD, .x = {wide}, .dy = wide, .dx = {wide}}},
        {"gelu, erf", erf},
        {"silu_gate", {DEVICE_SILU_GATE, .x = {wide, wide}, .y = wide}},
        {"silu_gate_backward",
         {DEVICE_SILU_GATE_BACKWARD, .x = {wide, wide}, .dy = wide, .dx = {wide, wide}}},
        {"add", {DEVICE_ADD, .x = {rows, rows}, .y = rows}},
        {"accumulate", {DEVICE_ACCUMULATE, .x = {rows}, .y = rows}},
        {"dropout", dropout},
        {"embedding", {DEVICE_EMBEDDING, .x = {ids}, .w = {words}, .y = rows}},
        {"embedding_backward", {DEVICE_EMBEDDING_BACKWARD, .x = {ids}, .dy = rows, .dw = {dwords}}},
    };
    int bad = 0;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s %s", calls[i].name, base_dtype_name(type));
        const device_matrix *most = calls[i].call.y.dtype ? &calls[i].call.y : &calls[i].call.dy;
        bad |= measure(b, name, calls[i].call, (double)(most->rows * most->columns), "elements");
    }
    return bad;
}

int main(int count, char **arguments) {
    bench b = {.size = (int64_t)640 << 20,
               .step = {.seed = 1,
                        .step = 1,
                        .update_scale = 1,
                        .learning_rate = 1e-4f,
                        .correction1 = 0.1f,
                        .correction2 = 0.05f,
                        .training = true,
                        .update = true}};
    int threads = count > 1 ? atoi(arguments[1]) : 0;
    void *memory = NULL;
    int bad = device_open_cpu(threads, count > 2 ? arguments[2] : NULL, &b.dev, &b.error) ||
              device_take(b.dev, b.size, &memory, &b.error) ||
              device_measure(b.dev, memory, b.size, &b.limits, &b.error);
    if (!bad) {
        char line[256];
        b.memory = memory;
        device_describe(b.dev, line, sizeof line);
        printf("%s, threads %d\n", line, device_threads(b.dev));
        printf("limits: fp32 %.0f GFLOP/s, bf16 %.0f GFLOP/s, memory %.1f GB/s (triad)\n",
               b.limits.fp32_operations * 1e-9, b.limits.bf16_operations * 1e-9,
               b.limits.bytes * 1e-9);
        bad = measure_flat(&b) || measure_rows(&b, BASE_FP32) || measure_rows(&b, BASE_BF16);
    }
    if (memory) device_give(b.dev, memory, b.size);
    device_close(b.dev);
    if (bad) fprintf(stderr, "bench_kernels: %s\n", b.error.message);
    return bad;
}
