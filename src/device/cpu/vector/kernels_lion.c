/* Lion. */
#include "device/cpu/vector/update.h"

typedef struct lion_numbers {
    float scale, shrink, rate, beta1, beta2, rest1, rest2;
} lion_numbers;

static inline void lion_run(lion_numbers a, const float *restrict gradient, float *restrict weights,
                            float *restrict momentum, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float g = gradient[i] * a.scale, m = momentum[i];
        float c = a.beta1 * m + a.rest1 * g;
        float up = c > 0.0f ? a.rate : 0.0f, down = c < 0.0f ? a.rate : 0.0f;
        weights[i] = weights[i] * a.shrink - up + down;
        momentum[i] = a.beta2 * m + a.rest2 * g;
    }
}

static void lion_piece(const void *numbers, const update_piece *piece) {
    lion_run(*(const lion_numbers *)numbers, piece->gradient, piece->weights, piece->states[0],
             piece->count);
}

void KERNEL(lion)(const cpu_part *part) {
    const device_call *c = part->call;
    const device_step *s = c->step;
    lion_numbers numbers = {.scale = s->update_scale,
                            .shrink = 1.0f - update_rate(c) * c->attributes.update.weight_decay,
                            .rate = update_rate(c),
                            .beta1 = s->beta1,
                            .beta2 = s->beta2,
                            .rest1 = (float)(1.0 - (double)s->beta1),
                            .rest2 = (float)(1.0 - (double)s->beta2)};
    update_part(part, 1, UPDATE_PLAIN, lion_piece, &numbers);
}
