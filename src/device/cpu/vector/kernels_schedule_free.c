/* Schedule-free AdamW. The state z - x, rather than z, begins as zero. */
#include "device/cpu/vector/update.h"

typedef struct schedule_free_numbers {
    float scale, decay, rate, beta2, rest1, rest2, epsilon, root, share, rest;
    bool update;
} schedule_free_numbers;

static inline void schedule_free_run(schedule_free_numbers a, const float *restrict gradient,
                                     float *restrict weights, float *restrict distance,
                                     float *restrict moment2, float *restrict shown, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float x = weights[i], d = distance[i], g = gradient[i] * a.scale;
        float v = a.beta2 * moment2[i] + a.rest2 * (g * g);
        float y = x + a.rest1 * d;
        d = d - a.rate * (g / (sqrtf(v) * a.root + a.epsilon) + a.decay * y);
        x = x + a.share * d;
        d = a.rest * d;
        weights[i] = x;
        distance[i] = d;
        moment2[i] = v;
        shown[i] = x + a.rest1 * d;
    }
}

static void schedule_free_piece(const void *numbers, const update_piece *piece) {
    schedule_free_numbers a = *(const schedule_free_numbers *)numbers;
    if (a.update) {
        schedule_free_run(a, piece->gradient, piece->weights, piece->states[0], piece->states[1],
                          piece->shown, piece->count);
        return;
    }
    for (int64_t i = 0; i < piece->count; i++)
        piece->shown[i] = piece->weights[i] + a.rest1 * piece->states[0][i];
}

void KERNEL(schedule_free)(const cpu_part *part) {
    const device_call *c = part->call;
    const device_step *s = c->step;
    schedule_free_numbers numbers = {.scale = s->update_scale,
                                     .decay = c->attributes.update.weight_decay,
                                     .rate = update_rate(c),
                                     .beta2 = s->beta2,
                                     .rest1 = (float)(1.0 - (double)s->beta1),
                                     .rest2 = (float)(1.0 - (double)s->beta2),
                                     .epsilon = c->attributes.update.epsilon,
                                     .root = 1.0f / sqrtf(s->correction2),
                                     .share = s->share,
                                     .rest = (float)(1.0 - (double)s->share),
                                     .update = s->update};
    update_part(part, 2, UPDATE_SHOWS, schedule_free_piece, &numbers);
}
