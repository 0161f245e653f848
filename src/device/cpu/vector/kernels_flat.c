/* Kernels on flat vectors: the optimizer and the gradient norm. */
#include "device/cpu/kernels_sets.h"
#include "device/cpu/vector/philox.h"

#if defined(KERNEL_BF16)
#include <immintrin.h>
#endif

/* Writes the copy past the caches, if the set can: no one reads it before the next step. */
static void copy_weights(const float *restrict from, const device_matrix *to, int64_t at,
                         int64_t n) {
    device_matrix flat = *to;
    flat.stride = 0;
#if defined(KERNEL_BF16)
    uint16_t *out = (uint16_t *)to->data + at;
    if (to->dtype == BASE_BF16 && ((uintptr_t)out & 63) == 0) {
        for (; n >= 32; n -= 32, at += 32, from += 32, out += 32) {
            __m512bh pair = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + 16), _mm512_loadu_ps(from));
            _mm512_stream_si512((__m512i *)out, (__m512i)pair);
        }
    }
#endif
    lanes_store(&flat, 0, at, n, from);
}

/* The kinds of state that are rounded, each with random numbers of its own, at coordinates that
 * dropout does not use. */
enum { ROUND_WEIGHTS, ROUND_MOMENT1, ROUND_MOMENT2, ROUND_KINDS };

static uint64_t rounding_key(const device_step *step, uint64_t kind) {
    return base_random_key(step->seed, (uint64_t)step->step, UINT64_C(1) << 63 | kind);
}

/* Rounds stochastically. Rounding to nearest would lose small changes that add up over steps:
 * updates below half of bf16's 2^-8, such as the factor 1 - beta2 of a second moment. Element e of
 * the model has number e % 8 of the eight numbers of counter e / 8, so bits do not depend on where
 * a vector is cut. */
static void store_rounded(const device_matrix *m, int64_t at, int64_t n, const float *from,
                          uint64_t key, int64_t element) {
    enum { EACH = 8 * PHILOX }; /* numbers per call, two per word */
    uint32_t words[(PIECE + 8) / 2 + 4 * PHILOX];
    uint16_t numbers[2 * (sizeof words / sizeof *words)], *to = (uint16_t *)m->data + at;
    uint64_t first = (uint64_t)(element + at);
    const uint16_t *own = numbers + first % 8;
    for (int64_t i = 0; i < n + (int64_t)(first % 8); i += EACH)
        philox(key, (first + (uint64_t)i) / 8, words + i / 2);
    memcpy(numbers, words, (size_t)(n + (int64_t)(first % 8)) * sizeof *numbers);
    for (int64_t i = 0; i < n; i++) to[i] = base_bf16_drawn(from[i], own[i]);
}

/* The state itself if it is fp32, else a copy in `buffer`. */
static float *open_state(float *buffer, const device_matrix *m, int64_t at, int64_t n) {
    if (m->dtype != BASE_FP32) lanes_load(buffer, m, 0, at, n);
    return lanes_place(buffer, m, 0, at);
}

typedef struct adam_numbers {
    float scale, beta1, beta2, rest1, rest2, epsilon, shrink, l2, rate, root;
} adam_numbers;

static inline void adam_run(adam_numbers a, const float *restrict gradient, float *restrict master,
                            float *restrict moment1, float *restrict moment2, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float p = master[i], g = gradient[i] * a.scale + a.l2 * p;
        float m = a.beta1 * moment1[i] + a.rest1 * g;
        float v = a.beta2 * moment2[i] + a.rest2 * (g * g);
        moment1[i] = m;
        moment2[i] = v;
        master[i] = p * a.shrink - a.rate * m / (sqrtf(v) * a.root + a.epsilon);
    }
}

/* Each stream is prefetched some lines ahead. Processors that wait for single lines of streams on
 * the same memory banks (see memory.c) lose a quarter less time. */
enum { ADAM_RUN = 16, ADAM_AHEAD = 64 };

static inline void adam_piece(adam_numbers a, const float *gradient, float *master, float *moment1,
                              float *moment2, int64_t n) {
    int64_t i = 0;
    for (; i + ADAM_RUN <= n; i += ADAM_RUN) {
        __builtin_prefetch(gradient + i + ADAM_AHEAD);
        __builtin_prefetch(master + i + ADAM_AHEAD);
        __builtin_prefetch(moment1 + i + ADAM_AHEAD);
        __builtin_prefetch(moment2 + i + ADAM_AHEAD);
        adam_run(a, gradient + i, master + i, moment1 + i, moment2 + i, ADAM_RUN);
    }
    adam_run(a, gradient + i, master + i, moment1 + i, moment2 + i, n - i);
}

void KERNEL(adam)(const cpu_part *part) {
    const device_call *c = part->call;
    float lr = c->step->learning_rate, decay = c->attributes.adam.weight_decay;
    bool decoupled = c->attributes.adam.decoupled;
    adam_numbers a = {.scale = c->step->update_scale,
                      .beta1 = c->step->beta1,
                      .beta2 = c->step->beta2,
                      .rest1 = (float)(1.0 - (double)c->step->beta1),
                      .rest2 = (float)(1.0 - (double)c->step->beta2),
                      .epsilon = c->attributes.adam.epsilon,
                      .shrink = decoupled ? 1.0f - lr * decay : 1.0f,
                      .l2 = decoupled ? 0.0f : decay,
                      .rate = lr / c->step->correction1,
                      .root = 1.0f / sqrtf(c->step->correction2)};
    const device_matrix *const states[ROUND_KINDS] = {&c->w[0], &c->saved[0], &c->saved[1]};
    uint64_t keys[ROUND_KINDS];
    for (int k = 0; k < ROUND_KINDS; k++) keys[k] = rounding_key(c->step, (uint64_t)k);
    for (int64_t at = part->first; at < part->first + part->count; at += PIECE) {
        int64_t left = part->first + part->count - at, n = left < PIECE ? left : PIECE;
        float buffer[PIECE], copies[ROUND_KINDS][PIECE], *values[ROUND_KINDS];
        for (int k = 0; k < ROUND_KINDS; k++) values[k] = open_state(copies[k], states[k], at, n);
        adam_piece(a, lanes_read(buffer, &c->x[0], 0, at, n), values[ROUND_WEIGHTS],
                   values[ROUND_MOMENT1], values[ROUND_MOMENT2], n);
        if (c->w[1].dtype != BASE_NONE) copy_weights(values[ROUND_WEIGHTS], &c->w[1], at, n);
        for (int k = 0; k < ROUND_KINDS; k++) {
            if (states[k]->dtype != BASE_BF16) continue;
            store_rounded(states[k], at, n, values[k], keys[k], c->attributes.element);
        }
    }
#if defined(KERNEL_BF16)
    _mm_sfence();
#endif
}

/* Element i is added to sum i mod SQUARES. Uses the compiler's vector extension, since compilers do
 * not vectorise such a loop, or keep the sums in memory. Prefetches across pages, where the
 * processor does not. */
enum { SQUARES = 8, SQUARES_AHEAD = 4096 };
typedef float square_values __attribute__((vector_size(SQUARES / 2 * sizeof(float))));
typedef double square_sums __attribute__((vector_size(SQUARES / 2 * sizeof(double))));

/* Two vectors of four values: with one vector of eight, compilers make loads and stores if no
 * register holds eight. */
static inline void add_eight(const float *x, square_sums sums[2]) {
    for (int i = 0; i < 2; i++) {
        square_values values;
        memcpy(&values, x + i * (SQUARES / 2), sizeof values);
        square_sums wide = __builtin_convertvector(values, square_sums);
        sums[i] += wide * wide;
    }
}

static inline double add_squares(const float *x, int64_t n) {
    square_sums sums[2] = {{0}, {0}};
    int64_t whole = n - n % SQUARES;
    for (int64_t i = 0; i < whole; i += SQUARES) {
        __builtin_prefetch((const char *)((uintptr_t)(x + i) + SQUARES_AHEAD));
        add_eight(x + i, sums);
    }
    if (whole < n) {
        float rest[SQUARES] = {0};
        memcpy(rest, x + whole, (size_t)(n - whole) * sizeof *x);
        add_eight(rest, sums);
    }
    return ((sums[0][0] + sums[1][0]) + (sums[0][2] + sums[1][2])) +
           ((sums[0][1] + sums[1][1]) + (sums[0][3] + sums[1][3]));
}

void KERNEL(square_sums)(const cpu_part *part) {
    const device_call *c = part->call;
    double *y = c->y.data;
    for (int64_t b = part->first; b < part->first + part->count; b++) {
        int64_t start = b * DEVICE_BLOCK, end = start + DEVICE_BLOCK;
        if (end > c->x[0].columns) end = c->x[0].columns;
        float buffer[DEVICE_BLOCK];
        y[b] = add_squares(lanes_read(buffer, &c->x[0], 0, start, end - start), end - start);
    }
}

const cpu_kernels KERNEL(cpu_kernels) = {.norm = KERNEL(norm),
                                         .norm_backward = KERNEL(norm_backward),
                                         .rope = KERNEL(rope),
                                         .regroup = KERNEL(regroup),
                                         .neighbours = KERNEL(neighbours),
                                         .rows = KERNEL(rows),
                                         .elementwise = KERNEL(elementwise),
                                         .adam = KERNEL(adam),
                                         .square_sums = KERNEL(square_sums),
                                         .exact_squares = KERNEL(exact_squares),
                                         .embedding = KERNEL(embedding),
                                         .embedding_backward = KERNEL(embedding_backward)};
