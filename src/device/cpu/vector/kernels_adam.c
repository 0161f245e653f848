/* Adam and AdamW, also with moments in 8 bits; AMSGrad. */
#include "device/cpu/vector/update.h"

typedef struct adam_numbers {
    float scale, beta1, beta2, rest1, rest2, epsilon, shrink, l2, rate, root;
} adam_numbers;

/* largest: of AMSGrad; else NULL. */
static inline void adam_run(adam_numbers a, const float *restrict gradient, float *restrict master,
                            float *restrict moment1, float *restrict moment2,
                            float *restrict largest, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float p = master[i], g = gradient[i] * a.scale + a.l2 * p;
        float m = a.beta1 * moment1[i] + a.rest1 * g;
        float v = a.beta2 * moment2[i] + a.rest2 * (g * g);
        moment1[i] = m;
        moment2[i] = v;
        if (largest) largest[i] = v = largest[i] > v ? largest[i] : v;
        master[i] = p * a.shrink - a.rate * m / (sqrtf(v) * a.root + a.epsilon);
    }
}

static void adam_piece(const void *numbers, const update_piece *piece) {
    adam_numbers a = *(const adam_numbers *)numbers;
    const float *gradient = piece->gradient;
    float *master = piece->weights, *moment1 = piece->states[0], *moment2 = piece->states[1];
    int64_t i = 0, n = piece->count;
    for (; i + UPDATE_RUN <= n; i += UPDATE_RUN) {
        __builtin_prefetch(gradient + i + UPDATE_AHEAD);
        __builtin_prefetch(master + i + UPDATE_AHEAD);
        __builtin_prefetch(moment1 + i + UPDATE_AHEAD);
        __builtin_prefetch(moment2 + i + UPDATE_AHEAD);
        adam_run(a, gradient + i, master + i, moment1 + i, moment2 + i, NULL, UPDATE_RUN);
    }
    adam_run(a, gradient + i, master + i, moment1 + i, moment2 + i, NULL, n - i);
}

static adam_numbers adam_numbers_of(const device_call *c) {
    float lr = update_rate(c), decay = c->attributes.update.weight_decay;
    bool decoupled = c->attributes.update.decoupled;
    return (adam_numbers){.scale = c->step->update_scale,
                          .beta1 = c->step->beta1,
                          .beta2 = c->step->beta2,
                          .rest1 = (float)(1.0 - (double)c->step->beta1),
                          .rest2 = (float)(1.0 - (double)c->step->beta2),
                          .epsilon = c->attributes.update.epsilon,
                          .shrink = decoupled ? 1.0f - lr * decay : 1.0f,
                          .l2 = decoupled ? 0.0f : decay,
                          .rate = lr / c->step->correction1,
                          .root = 1.0f / sqrtf(c->step->correction2)};
}

void KERNEL(adam)(const cpu_part *part) {
    adam_numbers numbers = adam_numbers_of(part->call);
    update_part(part, 2, UPDATE_PLAIN, adam_piece, &numbers);
}

static void amsgrad_piece(const void *numbers, const update_piece *piece) {
    adam_run(*(const adam_numbers *)numbers, piece->gradient, piece->weights, piece->states[0],
             piece->states[1], piece->states[2], piece->count);
}

void KERNEL(amsgrad)(const cpu_part *part) {
    adam_numbers numbers = adam_numbers_of(part->call);
    update_part(part, 3, UPDATE_PLAIN, amsgrad_piece, &numbers);
}

void KERNEL(adam_8bit)(const cpu_part *part) {
    adam_numbers numbers = adam_numbers_of(part->call);
    update_part(part, 2, UPDATE_CODED, adam_piece, &numbers);
}
