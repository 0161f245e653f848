/* What the kernels of optimizers share, for kernels_*.c: they go through a part piece by piece,
 * open states that are not fp32 as fp32 and round them when they store, and write the copy of
 * weights. */
#ifndef CPU_UPDATE_H
#define CPU_UPDATE_H

#include "device/cpu/kernels_sets.h"
#include "device/cpu/vector/codes.h"
#include "device/cpu/vector/philox.h"

#if defined(KERNEL_BF16)
#include <immintrin.h>
#endif

/* Writes the copy past the caches, if the set can: no one reads it before the next step. */
static inline void copy_weights(const float *restrict from, const device_matrix *to, int64_t at,
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

/* At coordinates that dropout does not use. Kind 0 is weights, then come the states. */
static inline uint64_t rounding_key(const device_step *step, uint64_t kind) {
    return base_random_key(step->seed, (uint64_t)step->step, UINT64_C(1) << 63 | kind);
}

/* Rounds stochastically. Rounding to nearest would lose small changes that add up over steps:
 * updates below half of bf16's 2^-8, such as the factor 1 - beta2 of a second moment. Element e of
 * the model has number e % 8 of the eight numbers of counter e / 8, so bits do not depend on where
 * a vector is cut. */
static inline void store_rounded(const device_matrix *m, int64_t at, int64_t n, const float *from,
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
static inline float *open_state(float *buffer, const device_matrix *m, int64_t at, int64_t n) {
    if (m->dtype != BASE_FP32) lanes_load(buffer, m, 0, at, n);
    return lanes_place(buffer, m, 0, at);
}

/* The learning rate of a call's weights. */
static inline float update_rate(const device_call *c) {
    return c->step->learning_rate * c->attributes.update.lr_scale;
}

/* What an optimizer computes with. */
typedef struct update_piece {
    const float *gradient;
    float *weights, *states[DEVICE_SAVED];
    float *shown;         /* what the copy becomes, of kernels that `show` */
    int64_t first, count; /* first: in the call's vectors */
} update_piece;

/* Each stream is prefetched some lines ahead. Processors that wait for single lines of streams on
 * the same memory banks (see memory.c) lose a quarter less time. */
enum { UPDATE_RUN = 16, UPDATE_AHEAD = 64 };

/* torch's lerp: exact where the share is 1, and where weights and average are equal. */
static inline void average_piece(float share, const float *restrict weights,
                                 float *restrict average, int64_t n) {
    float rest = 1.0f - share;
    bool less = share < 0.5f;
    for (int64_t i = 0; i < n; i++) {
        float a = average[i], w = weights[i], d = w - a;
        average[i] = less ? a + share * d : w - d * rest;
    }
}

/* How the copy of the weights is made, and how states are kept. */
enum {
    UPDATE_PLAIN = 0,
    UPDATE_SHOWS = 1, /* the copy is of what `run` leaves in `shown`, not of the weights */
    UPDATE_CODED = 2  /* states are codes of 8 bits, and their scales follow them as operands; the
                         first one has a sign */
};

/* Calls `run` for the pieces of a part and its first `states`. Of a step that does not update the
 * copy alone is written, and `run` is called only with UPDATE_SHOWS. */
static inline void update_part(const cpu_part *part, int states, int how,
                               void (*run)(const void *numbers, const update_piece *piece),
                               const void *numbers) {
    enum { WEIGHTS, STATES, KINDS = STATES + DEVICE_SAVED };
    const device_call *c = part->call;
    bool update = c->step->update, shows = how & UPDATE_SHOWS, coded = how & UPDATE_CODED;
    bool averages = c->attributes.update.averages;
    const device_matrix *kinds[KINDS] = {&c->w[0]};
    uint64_t keys[KINDS];
    for (int k = 0; k < states; k++) kinds[STATES + k] = &c->saved[k];
    for (int k = 0; k < STATES + states; k++) keys[k] = rounding_key(c->step, (uint64_t)k);
    for (int64_t at = part->first; at < part->first + part->count; at += PIECE) {
        int64_t left = part->first + part->count - at, n = left < PIECE ? left : PIECE;
        float buffer[PIECE], shown[PIECE], copies[KINDS][PIECE], *values[KINDS];
        for (int k = 0; k < (coded ? STATES : STATES + states); k++)
            values[k] = open_state(copies[k], kinds[k], at, n);
        for (int k = 0; coded && k < states; k++) {
            values[STATES + k] = copies[STATES + k];
            codes_open(codes_at(c, k, k + states, k == 0, at), n, copies[STATES + k]);
        }
        update_piece piece = {.gradient = lanes_read(buffer, &c->x[0], 0, at, n),
                              .weights = values[WEIGHTS],
                              .shown = shows ? shown : values[WEIGHTS],
                              .first = at,
                              .count = n};
        for (int k = 0; k < states; k++) piece.states[k] = values[STATES + k];
        if (update || shows) run(numbers, &piece);
        if (update && averages)
            average_piece(c->step->average_share, values[WEIGHTS],
                          (float *)c->saved[device_update_states(c->kernel)].data + at, n);
        if (c->w[1].dtype != BASE_NONE) copy_weights(piece.shown, &c->w[1], at, n);
        for (int k = 0; update && coded && k < states; k++)
            codes_store(codes_at(c, k, k + states, k == 0, at), n, copies[STATES + k]);
        for (int k = 0; update && k < (coded ? STATES : STATES + states); k++) {
            if (kinds[k]->dtype != BASE_BF16) continue;
            store_rounded(kinds[k], at, n, values[k], keys[k], c->attributes.element);
        }
    }
#if defined(KERNEL_BF16)
    _mm_sfence();
#endif
}

#endif
