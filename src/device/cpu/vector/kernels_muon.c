/* Muon: the momentum and what follows from it, then the weights. */
#include "device/cpu/vector/update.h"

typedef struct muon_numbers {
    float scale, share, rest; /* share: of the gradient in the momentum; rest: 1 - share */
    float shrink, rate;
    float *out;
} muon_numbers;

/* torch's lerp, twice, as DeepSpeed has it: the momentum goes to the gradient, and then the
 * gradient to the momentum. */
static inline void muon_move(muon_numbers a, const float *restrict gradient,
                             float *restrict momentum, float *restrict out, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float g = gradient[i] * a.scale, d = g - momentum[i];
        float m = a.share < 0.5f ? momentum[i] + a.share * d : g - d * a.rest;
        momentum[i] = m;
        out[i] = a.rest < 0.5f ? g + a.rest * (m - g) : m - (m - g) * a.share;
    }
}

static void muon_begin_piece(const void *numbers, const update_piece *piece) {
    const muon_numbers *a = numbers;
    muon_move(*a, piece->gradient, piece->states[0], a->out + piece->first, piece->count);
}

void KERNEL(muon_begin)(const cpu_part *part) {
    const device_call *c = part->call;
    double momentum = (double)c->attributes.update.momentum;
    muon_numbers numbers = {.scale = c->step->update_scale,
                            .share = (float)(1.0 - momentum),
                            .rest = (float)momentum,
                            .out = c->y.data};
    update_part(part, 1, UPDATE_PLAIN, muon_begin_piece, &numbers);
}

static inline void muon_run(muon_numbers a, const float *restrict update, float *restrict weights,
                            int64_t n) {
    for (int64_t i = 0; i < n; i++) weights[i] = weights[i] * a.shrink - a.rate * update[i];
}

static void muon_piece(const void *numbers, const update_piece *piece) {
    muon_run(*(const muon_numbers *)numbers, piece->gradient, piece->weights, piece->count);
}

void KERNEL(muon)(const cpu_part *part) {
    const device_call *c = part->call;
    muon_numbers numbers = {.shrink = 1.0f - update_rate(c) * c->attributes.update.weight_decay,
                            .rate = update_rate(c)};
    update_part(part, 0, UPDATE_PLAIN, muon_piece, &numbers);
}
