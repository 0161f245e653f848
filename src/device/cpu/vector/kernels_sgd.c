/* SGD, with momentum or without. */
#include "device/cpu/vector/update.h"

typedef struct sgd_numbers {
    float scale, decay, rate, momentum, share;
    bool nesterov;
} sgd_numbers;

static sgd_numbers sgd_numbers_of(const device_call *c) {
    return (sgd_numbers){.scale = c->step->update_scale,
                         .decay = c->attributes.update.weight_decay,
                         .rate = update_rate(c),
                         .momentum = c->step->beta1,
                         .share = c->step->share,
                         .nesterov = c->attributes.update.nesterov};
}

static inline void sgd_run(sgd_numbers a, const float *restrict gradient, float *restrict weights,
                           int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float p = weights[i];
        weights[i] = p - a.rate * (gradient[i] * a.scale + a.decay * p);
    }
}

static void sgd_piece(const void *numbers, const update_piece *piece) {
    sgd_run(*(const sgd_numbers *)numbers, piece->gradient, piece->weights, piece->count);
}

void KERNEL(sgd)(const cpu_part *part) {
    sgd_numbers numbers = sgd_numbers_of(part->call);
    update_part(part, 0, UPDATE_PLAIN, sgd_piece, &numbers);
}

static inline void momentum_run(sgd_numbers a, bool nesterov, const float *restrict gradient,
                                float *restrict weights, float *restrict momentum, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float p = weights[i], g = gradient[i] * a.scale + a.decay * p;
        float m = a.momentum * momentum[i] + a.share * g;
        momentum[i] = m;
        weights[i] = p - a.rate * (nesterov ? g + a.momentum * m : m);
    }
}

static void momentum_piece(const void *numbers, const update_piece *piece) {
    sgd_numbers a = *(const sgd_numbers *)numbers;
    if (a.nesterov)
        momentum_run(a, true, piece->gradient, piece->weights, piece->states[0], piece->count);
    else
        momentum_run(a, false, piece->gradient, piece->weights, piece->states[0], piece->count);
}

void KERNEL(momentum)(const cpu_part *part) {
    sgd_numbers numbers = sgd_numbers_of(part->call);
    update_part(part, 1, UPDATE_PLAIN, momentum_piece, &numbers);
}
