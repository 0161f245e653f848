/* Rates of the CPU's products, head and attention on the shapes of GPT-2 124M, beside the limit of
 * a multiply-add loop in the same run: bench_matmul [THREADS] [PART...], parts linear head
 * attention. Best of several runs; attention counts the half of the scores that causal attention
 * needs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/device.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { TOKENS = 4096, LENGTH = 1024, RUNS = 5 };

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#if defined(__x86_64__)
#define LOOP(NAME, TARGET, INSTRUCTION, OPERATIONS)                                                \
    __attribute__((target(TARGET))) static double NAME(void) {                                     \
        const long rounds = 4000000;                                                               \
        double best = 0;                                                                           \
        for (int run = 0; run < RUNS; run++) {                                                     \
            double start = now(CLOCK_THREAD_CPUTIME_ID);                                           \
            for (long i = 0; i < rounds; i++)                                                      \
                __asm__ volatile(INSTRUCTION " %%zmm30,%%zmm31,%%zmm0\n" INSTRUCTION               \
                                             " %%zmm30,%%zmm31,%%zmm1\n" INSTRUCTION               \
                                             " %%zmm30,%%zmm31,%%zmm2\n" INSTRUCTION               \
                                             " %%zmm30,%%zmm31,%%zmm3\n" INSTRUCTION               \
                                             " %%zmm30,%%zmm31,%%zmm4\n" INSTRUCTION               \
                                             " %%zmm30,%%zmm31,%%zmm5\n" INSTRUCTION               \
                                             " %%zmm30,%%zmm31,%%zmm6\n" INSTRUCTION               \
                                             " %%zmm30,%%zmm31,%%zmm7\n" INSTRUCTION               \
                                             " %%zmm30,%%zmm31,%%zmm8\n" INSTRUCTION               \
                                             " %%zmm30,%%zmm31,%%zmm9\n" INSTRUCTION               \
                                             " %%zmm30,%%zmm31,%%zmm10\n" INSTRUCTION              \
                                             " %%zmm30,%%zmm31,%%zmm11\n"                          \
                                 :                                                                 \
                                 :                                                                 \
                                 : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", \
                                   "xmm8", "xmm9", "xmm10", "xmm11");                              \
            double rate =                                                                          \
                (double)rounds * 12 * OPERATIONS / (now(CLOCK_THREAD_CPUTIME_ID) - start) * 1e-9;  \
            best = rate > best ? rate : best;                                                      \
        }                                                                                          \
        return best;                                                                               \
    }
LOOP(limit_fp32, "avx512f", "vfmadd231ps", 32)
LOOP(limit_bf16, "avx512f,avx512bf16", "vdpbf16ps", 64)
#endif

/* Of one thread; 0 where the loop's instructions are not there. */
static double limit_of(const device *dev, base_dtype type) {
#if defined(__x86_64__)
    bool bf16 = strcmp(device_isa(dev), "avx512_bf16") == 0;
    if (type == BASE_BF16) return bf16 ? limit_bf16() : 0;
    if (bf16 || strcmp(device_isa(dev), "avx512") == 0) return limit_fp32();
#endif
    (void)dev, (void)type;
    return 0;
}

static void check(sifr_status status, const sifr_error *error) {
    if (status == SIFR_OK) return;
    fprintf(stderr, "bench_matmul: %s\n", error->message);
    exit(1);
}

static device_matrix matrix(device *dev, int64_t rows, int64_t columns, base_dtype type) {
    sifr_error error = {0};
    device_matrix m = {NULL, rows, columns, columns, type};
    int64_t count = rows * columns;
    check(device_take(dev, count * base_dtype_bytes(type), &m.data, &error), &error);
    uint32_t state = 12345;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        float value = (float)(int32_t)state * 0x1p-31f;
        uint32_t bits;
        memcpy(&bits, &value, 4);
        if (type == BASE_BF16)
            ((uint16_t *)m.data)[i] = (uint16_t)(bits >> 16);
        else
            ((float *)m.data)[i] = value;
    }
    return m;
}

static void give(device *dev, device_matrix *m) {
    if (m->data != NULL)
        device_give(dev, m->data, m->rows * m->columns * base_dtype_bytes(m->dtype));
}

static double best_time(device *dev, device_call *call) {
    sifr_error error = {0};
    check(device_prepare(dev, call, &error), &error);
    int64_t bytes = call->scratch_bytes;
    check(device_take(dev, bytes + 1, &call->scratch, &error), &error);
    double best = 1e30;
    clockid_t clock = device_threads(dev) == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    for (int run = 0; run < RUNS; run++) {
        double start = now(clock);
        check(device_run(dev, call, &error), &error);
        double time = now(clock) - start;
        best = time < best ? time : best;
    }
    device_give(dev, call->scratch, bytes + 1);
    return best;
}

static void say(const char *what, double operations, double time, double limit) {
    double rate = operations / time * 1e-9;
    if (limit > 0)
        printf("  %-10s %7.1f GFLOP/s  %5.1f %%\n", what, rate, 100 * rate / limit);
    else
        printf("  %-10s %7.1f GFLOP/s\n", what, rate);
    fflush(stdout);
}

static void bench_linear(device *dev, base_dtype type, double limit) {
    static const int64_t shapes[][2] = {{768, 2304}, {768, 768}, {768, 3072}, {3072, 768}};
    for (int i = 0; i < 8; i++) {
        int64_t in = shapes[i % 4][0], out = shapes[i % 4][1];
        bool transposed = i >= 4;
        printf("%s %lld x %lld%s\n", base_dtype_name(type), (long long)in, (long long)out,
               transposed ? ", stored in x out" : "");
        device_matrix x = matrix(dev, TOKENS, in, type), y = matrix(dev, TOKENS, out, type);
        device_matrix w = transposed ? matrix(dev, in, out, type) : matrix(dev, out, in, type);
        device_matrix bias = matrix(dev, 1, out, type), dx = matrix(dev, TOKENS, in, type);
        device_matrix dw = matrix(dev, w.rows, w.columns, BASE_FP32);
        device_matrix db = matrix(dev, 1, out, BASE_FP32);
        double operations = 2.0 * TOKENS * (double)in * (double)out;
        device_call call = {.kernel = DEVICE_LINEAR, .x = {x}, .w = {w, bias}, .y = y};
        call.attributes.linear.transposed = transposed;
        say("forward", operations, best_time(dev, &call), limit);
        device_call back = {.kernel = DEVICE_LINEAR_BACKWARD, .x = {x}, .w = {w}, .dy = y};
        back.attributes.linear.transposed = transposed;
        back.dx[0] = dx;
        say("dx", operations, best_time(dev, &back), limit);
        back.dx[0] = (device_matrix){0}, back.dw[0] = dw, back.dw[1] = db;
        say("dw, db", operations, best_time(dev, &back), limit);
        device_matrix *all[] = {&x, &y, &w, &bias, &dx, &dw, &db};
        for (size_t j = 0; j < sizeof all / sizeof *all; j++) give(dev, all[j]);
    }
    device_matrix x = matrix(dev, 1, 768, type), y = matrix(dev, 1, 50257, type);
    device_matrix w = matrix(dev, 50257, 768, type);
    device_call call = {.kernel = DEVICE_LINEAR, .x = {x}, .w = {w}, .y = y};
    double bytes = 50257.0 * 768 * (double)base_dtype_bytes(type);
    printf("%s one row, 768 x 50257\n  %.1f GB/s of weights\n", base_dtype_name(type),
           bytes / best_time(dev, &call) * 1e-9);
    device_matrix *all[] = {&x, &y, &w};
    for (size_t j = 0; j < sizeof all / sizeof *all; j++) give(dev, all[j]);
}

static void bench_head(device *dev, base_dtype type, double limit) {
    device_matrix x = matrix(dev, TOKENS, 768, type), w = matrix(dev, 50257, 768, type);
    device_matrix dx = matrix(dev, TOKENS, 768, type), dw = matrix(dev, 50257, 768, BASE_FP32);
    device_matrix labels = matrix(dev, TOKENS, 1, BASE_FP32);
    device_matrix loss = matrix(dev, TOKENS, 1, BASE_FP32);
    labels.dtype = BASE_INT32;
    for (int i = 0; i < TOKENS; i++) ((int32_t *)labels.data)[i] = (int32_t)(i * 7919 % 50257);
    device_step step = {.gradient_scale = 1.0f / TOKENS};
    double operations = 2.0 * TOKENS * 768 * 50257;
    printf("%s head, 50257 words\n", base_dtype_name(type));
    device_call call = {
        .kernel = DEVICE_HEAD_LOSS, .x = {x, labels}, .w = {w}, .y = loss, .step = &step};
    say("loss", operations, best_time(dev, &call), limit);
    call.kernel = DEVICE_HEAD_LOSS_BACKWARD, call.dx[0] = dx, call.dw[0] = dw;
    say("with dx, dw", 3 * operations, best_time(dev, &call), limit);
    device_matrix *all[] = {&x, &w, &dx, &dw, &labels, &loss};
    for (size_t j = 0; j < sizeof all / sizeof *all; j++) give(dev, all[j]);
}

static device_matrix slice(const device_matrix *m, int64_t first, int64_t columns) {
    device_matrix s = *m;
    s.data = (char *)m->data + first * base_dtype_bytes(m->dtype), s.columns = columns;
    return s;
}

static void bench_attention(device *dev, base_dtype type, double limit) {
    static const int widths[] = {64, 128, 96, 32};
    for (int i = 0; i < 5; i++) {
        int width = widths[i % 4], heads = 768 / width;
        float dropout = i == 4 ? 0.1f : 0.0f;
        if (i == 4) width = 64, heads = 12;
        device_matrix qkv = matrix(dev, TOKENS, 3 * 768, type);
        device_matrix dqkv = matrix(dev, TOKENS, 3 * 768, type);
        device_matrix y = matrix(dev, TOKENS, 768, type), dy = matrix(dev, TOKENS, 768, type);
        device_matrix sums = matrix(dev, heads, TOKENS, BASE_FP32);
        device_step step = {.seed = 1, .training = true};
        device_call call = {
            .kernel = DEVICE_ATTENTION,
            .x = {slice(&qkv, 0, 768), slice(&qkv, 768, 768), slice(&qkv, 1536, 768)},
            .y = y,
            .saved = {sums},
            .step = &step};
        call.attributes.attention.heads = call.attributes.attention.kv_heads = heads;
        call.attributes.attention.head_dim = width;
        call.attributes.attention.sequences = TOKENS / LENGTH;
        call.attributes.attention.length = LENGTH;
        call.attributes.attention.scale = (float)(1 / sqrt(width));
        call.attributes.attention.dropout = dropout;
        double operations = 4.0 * TOKENS * (LENGTH + 1) / 2 * 768;
        printf("%s attention, length %d, %d heads of %d, dropout %g\n", base_dtype_name(type),
               LENGTH, heads, width, (double)dropout);
        say("forward", operations, best_time(dev, &call), limit);
        call.kernel = DEVICE_ATTENTION_BACKWARD, call.dy = dy;
        for (int j = 0; j < 3; j++) call.dx[j] = slice(&dqkv, 768 * j, 768);
        say("backward", 2.5 * operations, best_time(dev, &call), limit);
        device_matrix *all[] = {&qkv, &dqkv, &y, &dy, &sums};
        for (size_t j = 0; j < sizeof all / sizeof *all; j++) give(dev, all[j]);
    }
}

static bool wanted(int count, char **names, const char *part) {
    for (int i = 2; i < count; i++)
        if (strcmp(names[i], part) == 0) return true;
    return count <= 2;
}

int main(int count, char **arguments) {
    int threads = count > 1 ? atoi(arguments[1]) : 1;
    device *dev = NULL;
    sifr_error error = {0};
    check(device_open_cpu(threads, NULL, &dev, &error), &error);
    threads = device_threads(dev);
    static const base_dtype types[] = {BASE_BF16, BASE_FP32};
    for (int i = 0; i < 2; i++) {
        double limit = limit_of(dev, types[i]) * threads;
        printf("%s: %d threads, %s, limit %.0f GFLOP/s\n", base_dtype_name(types[i]), threads,
               device_isa(dev), limit);
        if (wanted(count, arguments, "linear")) bench_linear(dev, types[i], limit);
        if (wanted(count, arguments, "head")) bench_head(dev, types[i], limit);
        if (wanted(count, arguments, "attention")) bench_attention(dev, types[i], limit);
    }
    device_close(dev);
    return 0;
}
