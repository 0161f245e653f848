/* Adagrad. */
#include "device/cpu/vector/update.h"

typedef struct adagrad_numbers {
    float scale, decay, rate, epsilon;
} adagrad_numbers;

static inline void adagrad_run(adagrad_numbers a, const float *restrict gradient,
                               float *restrict weights, float *restrict sum, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float p = weights[i], g = gradient[i] * a.scale + a.decay * p;
        float s = sum[i] + g * g;
        sum[i] = s;
        weights[i] = p - a.rate * g / (sqrtf(s) + a.epsilon);
    }
}

static void adagrad_piece(const void *numbers, const update_piece *piece) {
    adagrad_run(*(const adagrad_numbers *)numbers, piece->gradient, piece->weights,
                piece->states[0], piece->count);
}

void KERNEL(adagrad)(const cpu_part *part) {
    const device_call *c = part->call;
    adagrad_numbers numbers = {.scale = c->step->update_scale,
                               .decay = c->attributes.update.weight_decay,
                               .rate = update_rate(c),
                               .epsilon = c->attributes.update.epsilon};
    update_part(part, 1, UPDATE_PLAIN, adagrad_piece, &numbers);
}
