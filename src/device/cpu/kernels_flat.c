/* Kernels on flat fp32 vectors: the optimizer and the gradient norm. */
#include "device/cpu/kernels_sets.h"

void KERNEL(adam)(const cpu_part *part) {
    const device_call *c = part->call;
    const float *restrict gradient = (const float *)c->x[0].data;
    float *restrict master = (float *)c->w[0].data;
    float *restrict moment1 = (float *)c->saved[0].data, *restrict moment2 =
                                                             (float *)c->saved[1].data;
    uint16_t *restrict copy = (uint16_t *)c->w[1].data;
    float scale = c->step->update_scale, lr = c->step->learning_rate;
    float beta1 = c->attributes.adam.beta1, beta2 = c->attributes.adam.beta2;
    float rest1 = 1.0f - beta1, rest2 = 1.0f - beta2, epsilon = c->attributes.adam.epsilon;
    float decay = c->attributes.adam.weight_decay;
    float shrink = c->attributes.adam.decoupled ? 1.0f - lr * decay : 1.0f;
    float l2 = c->attributes.adam.decoupled ? 0.0f : decay;
    float rate = lr / c->step->correction1, root = 1.0f / sqrtf(c->step->correction2);
    bool copied = c->w[1].dtype == DEVICE_BF16;
    for (int64_t at = part->first; at < part->first + part->count; at += LANES) {
        int64_t left = part->first + part->count - at, n = left < LANES ? left : LANES;
        float p[LANES];
        for (int64_t i = 0; i < n; i++) {
            float g = gradient[at + i] * scale + l2 * master[at + i];
            float m = beta1 * moment1[at + i] + rest1 * g;
            float v = beta2 * moment2[at + i] + rest2 * (g * g);
            moment1[at + i] = m;
            moment2[at + i] = v;
            p[i] = master[at + i] * shrink - rate * m / (sqrtf(v) * root + epsilon);
            master[at + i] = p[i];
        }
        if (copied) {
            for (int64_t i = 0; i < n; i++) copy[at + i] = lanes_to_bf16(p[i]);
        }
    }
}

void KERNEL(square_sums)(const cpu_part *part) {
    const device_call *c = part->call;
    const float *x = c->x[0].data;
    double *y = c->y.data;
    for (int64_t b = part->first; b < part->first + part->count; b++) {
        int64_t start = b * DEVICE_BLOCK, end = start + DEVICE_BLOCK;
        if (end > c->x[0].columns) end = c->x[0].columns;
        double sums[8] = {0};
        for (int64_t i = start; i < end; i += 8) {
            int64_t n = end - i < 8 ? end - i : 8;
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
