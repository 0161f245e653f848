/* LAMB: the moments and the sums of a weight, then the weight. */
#include "device/cpu/vector/exact_squares.h"
#include "device/cpu/vector/update.h"

typedef struct lamb_numbers {
    float scale, beta1, beta2, rest1, rest2, epsilon, decay, first, root, rate;
    base_exact_sum *sums; /* of the weights, of their directions */
} lamb_numbers;

static lamb_numbers lamb_numbers_of(const device_call *c) {
    return (lamb_numbers){.scale = c->step->update_scale,
                          .beta1 = c->step->beta1,
                          .beta2 = c->step->beta2,
                          .rest1 = (float)(1.0 - (double)c->step->beta1),
                          .rest2 = (float)(1.0 - (double)c->step->beta2),
                          .epsilon = c->attributes.update.epsilon,
                          .decay = c->attributes.update.weight_decay,
                          .first = 1.0f / c->step->correction1,
                          .root = 1.0f / sqrtf(c->step->correction2),
                          .rate = update_rate(c) * c->attributes.update.trust};
}

static inline float lamb_direction(const lamb_numbers *a, float p, float m, float v) {
    return m * a->first / (sqrtf(v) * a->root + a->epsilon) + a->decay * p;
}

static inline void lamb_move(lamb_numbers a, const float *restrict gradient,
                             const float *restrict weights, float *restrict moment1,
                             float *restrict moment2, float *restrict direction, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float g = gradient[i] * a.scale;
        float m = a.beta1 * moment1[i] + a.rest1 * g;
        float v = a.beta2 * moment2[i] + a.rest2 * (g * g);
        moment1[i] = m;
        moment2[i] = v;
        direction[i] = lamb_direction(&a, weights[i], m, v);
    }
}

static void add_squares(float *values, int64_t n, base_exact_sum *sum) {
    device_matrix row = {values, 1, n, n, BASE_FP32};
    KERNEL(exact_squares)(&row, 0, n, sum);
}

static void lamb_begin_piece(const void *numbers, const update_piece *piece) {
    const lamb_numbers *a = numbers;
    float direction[PIECE];
    lamb_move(*a, piece->gradient, piece->weights, piece->states[0], piece->states[1], direction,
              piece->count);
    add_squares(piece->weights, piece->count, &a->sums[0]);
    add_squares(direction, piece->count, &a->sums[1]);
}

void KERNEL(lamb_begin)(const cpu_part *part) {
    base_exact_sum own[2] = {0}, *sums = part->call->y.data;
    lamb_numbers numbers = lamb_numbers_of(part->call);
    numbers.sums = own;
    update_part(part, 2, UPDATE_PLAIN, lamb_begin_piece, &numbers);
    for (int s = 0; s < 2; s++) {
        base_exact_settle(&own[s]);
        exact_merge_parallel(&sums[s], &own[s]);
    }
}

static inline void lamb_run(lamb_numbers a, float *restrict weights, const float *restrict moment1,
                            const float *restrict moment2, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        weights[i] -= a.rate * lamb_direction(&a, weights[i], moment1[i], moment2[i]);
}

static void lamb_piece(const void *numbers, const update_piece *piece) {
    lamb_run(*(const lamb_numbers *)numbers, piece->weights, piece->states[0], piece->states[1],
             piece->count);
}

void KERNEL(lamb)(const cpu_part *part) {
    lamb_numbers numbers = lamb_numbers_of(part->call);
    update_part(part, 2, UPDATE_PLAIN, lamb_piece, &numbers);
}
