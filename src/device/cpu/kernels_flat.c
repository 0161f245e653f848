/* Kernels on flat vectors: the optimizer and the gradient norm. */
#include "device/cpu/kernels_sets.h"

#if defined(KERNEL_BF16)
#include <immintrin.h>
#endif

/* The copy is written past the caches, where the set can: nobody reads it before the next step. */
static void copy_weights(const float *restrict from, const device_matrix *to, int64_t at,
                         int64_t n) {
    device_matrix flat = *to;
    flat.stride = 0;
#if defined(KERNEL_BF16)
    uint16_t *out = (uint16_t *)to->data + at;
    if (to->dtype == DEVICE_BF16 && ((uintptr_t)out & 63) == 0) {
        for (; n >= 32; n -= 32, at += 32, from += 32, out += 32) {
            __m512bh pair = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + 16), _mm512_loadu_ps(from));
            _mm512_stream_si512((__m512i *)out, (__m512i)pair);
        }
    }
#endif
    lanes_store(&flat, 0, at, n, from);
}

typedef struct adam_numbers {
    float scale, beta1, beta2, rest1, rest2, epsilon, shrink, l2, rate, root;
} adam_numbers;

static inline void adam_piece(adam_numbers a, const float *restrict gradient,
                              float *restrict master, float *restrict moment1,
                              float *restrict moment2, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float p = master[i], g = gradient[i] * a.scale + a.l2 * p;
        float m = a.beta1 * moment1[i] + a.rest1 * g;
        float v = a.beta2 * moment2[i] + a.rest2 * (g * g);
        moment1[i] = m;
        moment2[i] = v;
        master[i] = p * a.shrink - a.rate * m / (sqrtf(v) * a.root + a.epsilon);
    }
}

void KERNEL(adam)(const cpu_part *part) {
    const device_call *c = part->call;
    float lr = c->step->learning_rate, decay = c->attributes.adam.weight_decay;
    bool decoupled = c->attributes.adam.decoupled;
    adam_numbers a = {.scale = c->step->update_scale,
                      .beta1 = c->attributes.adam.beta1,
                      .beta2 = c->attributes.adam.beta2,
                      .rest1 = (float)(1.0 - (double)c->attributes.adam.beta1),
                      .rest2 = (float)(1.0 - (double)c->attributes.adam.beta2),
                      .epsilon = c->attributes.adam.epsilon,
                      .shrink = decoupled ? 1.0f - lr * decay : 1.0f,
                      .l2 = decoupled ? 0.0f : decay,
                      .rate = lr / c->step->correction1,
                      .root = 1.0f / sqrtf(c->step->correction2)};
    for (int64_t at = part->first; at < part->first + part->count; at += PIECE) {
        int64_t left = part->first + part->count - at, n = left < PIECE ? left : PIECE;
        float *master = (float *)c->w[0].data + at, buffer[PIECE];
        adam_piece(a, lanes_read(buffer, &c->x[0], 0, at, n), master,
                   (float *)c->saved[0].data + at, (float *)c->saved[1].data + at, n);
        if (c->w[1].dtype != DEVICE_NONE) copy_weights(master, &c->w[1], at, n);
    }
#if defined(KERNEL_BF16)
    _mm_sfence();
#endif
}

void KERNEL(square_sums)(const cpu_part *part) {
    const device_call *c = part->call;
    double *y = c->y.data;
    for (int64_t b = part->first; b < part->first + part->count; b++) {
        int64_t start = b * DEVICE_BLOCK, end = start + DEVICE_BLOCK;
        if (end > c->x[0].columns) end = c->x[0].columns;
        float buffer[DEVICE_BLOCK];
        const float *x = lanes_read(buffer, &c->x[0], 0, start, end - start);
        double sums[8] = {0};
        for (int64_t i = 0; i < end - start; i += 8) {
            int64_t n = end - start - i < 8 ? end - start - i : 8;
            for (int64_t l = 0; l < n; l++) sums[l] += (double)x[i + l] * (double)x[i + l];
        }
        y[b] = ((sums[0] + sums[4]) + (sums[2] + sums[6])) +
               ((sums[1] + sums[5]) + (sums[3] + sums[7]));
    }
}

const cpu_kernels KERNEL(cpu_kernels) = {.norm = KERNEL(norm),
                                         .norm_backward = KERNEL(norm_backward),
                                         .rope = KERNEL(rope),
                                         .elementwise = KERNEL(elementwise),
                                         .adam = KERNEL(adam),
                                         .square_sums = KERNEL(square_sums),
                                         .embedding = KERNEL(embedding),
                                         .embedding_backward = KERNEL(embedding_backward)};
