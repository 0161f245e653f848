/* What the kernels of optimizers share: they load packs of the gradient, weights and states, apply
 * a rule to each element and store, rounding states in bf16 as device/cpu/vector/update.h does. A
 * thread takes several packs: what it computes from the step's numbers, and the keys for states
 * that are rounded stochastically, take as long as a pack.
 *
 * A rule has STATES, the struct numbers, made by of_step, and the function apply, which changes a
 * weight and its states and returns what the copy of the weight becomes; shown returns that of a
 * step that does not update. */
#ifndef CUDA_UPDATES_H
#define CUDA_UPDATES_H

#include "device/cuda/vector/optimizer_arguments.h"
#include "device/cuda/vector/packs.h"

/* The 16-bit numbers of elements first to first + 7: eight of a counter, two to a word. The words
 * are moved by selection, since registers have no index. */
DEVICE void pack_draws(uint64_t key, uint64_t first, uint16_t out[PACK]) {
    uint32_t words[PACK] = {};
    int skip = (int)(first % PACK);
    base_random4 own = base_philox(key, first / PACK, 0);
#pragma unroll
    for (int i = 0; i < 4; i++) words[i] = own.v[i];
    if (skip) {
        base_random4 next = base_philox(key, first / PACK + 1, 0);
#pragma unroll
        for (int i = 0; i < 4; i++) words[4 + i] = next.v[i];
#pragma unroll
        for (int i = 0; i < 6; i++)
            if (skip & 4) words[i] = words[i + 2];
#pragma unroll
        for (int i = 0; i < 5; i++)
            if (skip & 2) words[i] = words[i + 1];
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (skip & 1) words[i] = words[i] >> 16 | words[i + 1] << 16;
    }
#pragma unroll
    for (int i = 0; i < PACK; i++) out[i] = (uint16_t)(words[i / 2] >> (i % 2 * 16));
}

/* The learning rate of the weights. */
DEVICE float update_rate(const update_arguments &a) {
    return a.step->learning_rate * a.lr_scale;
}

DEVICE pack_words drawn_pack(const float from[PACK], const uint16_t draws[PACK]) {
    pack_words words = {};
#pragma unroll
    for (int i = 0; i < PACK; i++)
        words.of[i / 2] |= (uint32_t)base_bf16_drawn(from[i], draws[i]) << (i % 2 * 16);
    return words;
}

/* Loads kind `k`: the weights, or a state. */
DEVICE void load_kind(const update_arguments &a, int k, int64_t at, int count, float out[PACK]) {
    int type = a.kinds[k].type;
    widen_pack(load_pack(a.kinds[k].data, at, type, count), type, out);
}

/* Stores kind `k`, rounded stochastically where it is in bf16. */
DEVICE void store_kind(const update_arguments &a, int k, uint64_t key, int64_t at, int count,
                       const float from[PACK]) {
    if (a.kinds[k].type == BASE_BF16) {
        uint16_t draws[PACK];
        pack_draws(key, a.element + (uint64_t)at, draws);
        store_pack(a.kinds[k].data, at, BASE_BF16, count, drawn_pack(from, draws));
    } else {
        store_pack(a.kinds[k].data, at, BASE_FP32, count, narrow_pack(from, BASE_FP32));
    }
}

/* At coordinates that dropout does not use. */
DEVICE uint64_t key_of_kind(const device_step *step, int k) {
    return base_random_key(step->seed, (uint64_t)step->step, (uint64_t)1 << 63 | (uint64_t)k);
}

/* Moves the average of the weights to them, with the operations of device/cpu/vector/update.h. */
DEVICE void average_pack(const update_arguments &a, const float weights[PACK], int64_t at,
                         int count) {
    float share = a.step->average_share, rest = 1.0f - share, average[PACK];
    widen_pack(load_pack(a.average, at, BASE_FP32, count), BASE_FP32, average);
#pragma unroll
    for (int i = 0; i < PACK; i++) {
        float d = weights[i] - average[i];
        average[i] = share < 0.5f ? average[i] + share * d : weights[i] - d * rest;
    }
    store_pack(a.average, at, BASE_FP32, count, narrow_pack(average, BASE_FP32));
}

template <typename rule>
DEVICE void update_pack(const update_arguments &a, const typename rule::numbers &n,
                        const uint64_t *keys, int64_t at, int count) {
    enum { KINDS = 1 + rule::STATES };
    pack_words loaded[KINDS], gradient = load_pack(a.gradient.data, at, a.gradient.type, count);
    float g[PACK], copy[PACK] = {}, kinds[KINDS][PACK];
#pragma unroll
    for (int k = 0; k < KINDS; k++)
        loaded[k] = load_pack(a.kinds[k].data, at, a.kinds[k].type, count);
    widen_pack(gradient, a.gradient.type, g);
#pragma unroll
    for (int k = 0; k < KINDS; k++) widen_pack(loaded[k], a.kinds[k].type, kinds[k]);
#pragma unroll
    for (int i = 0; i < PACK; i++) {
        float own[KINDS];
#pragma unroll
        for (int k = 0; k < KINDS; k++) own[k] = kinds[k][i];
        float shown = rule::apply(n, g[i], own);
        if (rule::SHOWN) copy[i] = shown;
#pragma unroll
        for (int k = 0; k < KINDS; k++) kinds[k][i] = own[k];
    }
    if (a.average) average_pack(a, kinds[0], at, count);
    if (a.copy.data)
        store_pack(a.copy.data, at, a.copy.type, count,
                   narrow_pack(rule::SHOWN ? copy : kinds[0], a.copy.type));
#pragma unroll
    for (int k = 0; k < KINDS; k++) store_kind(a, k, keys[k], at, count, kinds[k]);
}

/* Transfers are not left out with an update: what they write must be what was there. */
template <typename rule>
DEVICE void copy_pack(const update_arguments &a, const typename rule::numbers &n, int64_t at,
                      int count) {
    enum { KINDS = 1 + rule::SHOWN };
    float kinds[KINDS][PACK], copy[PACK];
#pragma unroll
    for (int k = 0; k < KINDS; k++) load_kind(a, k, at, count, kinds[k]);
#pragma unroll
    for (int i = 0; i < PACK; i++) {
        float own[KINDS];
#pragma unroll
        for (int k = 0; k < KINDS; k++) own[k] = kinds[k][i];
        copy[i] = rule::shown(n, own);
    }
    store_pack(a.copy.data, at, a.copy.type, count, narrow_pack(copy, a.copy.type));
}

/* Calls work(at, count) for each pack of the thread: `count` elements from `at` on. */
template <typename function>
DEVICE void each_pack(const update_arguments &a, const function &work) {
    int64_t first = (int64_t)blockIdx.x * UPDATE_PACKS * PACK_THREADS + threadIdx.x;
#pragma unroll 1
    for (int p = 0; p < UPDATE_PACKS; p++) {
        int64_t at = (first + p * PACK_THREADS) * PACK, left = a.count - at;
        if (left <= 0) return;
        work(at, left < PACK ? (int)left : PACK);
    }
}

template <typename rule> DEVICE void update_vector(const update_arguments &a) {
    bool update = a.step->update;
    if (!update && !a.copy.data) return;
    typename rule::numbers n = rule::of_step(a);
    uint64_t keys[1 + rule::STATES] = {};
#pragma unroll
    for (int k = 0; k < 1 + rule::STATES; k++) {
        if (a.kinds[k].type == BASE_BF16) keys[k] = key_of_kind(a.step, k);
    }
    each_pack(a, [&](int64_t at, int count) {
        if (update)
            update_pack<rule>(a, n, keys, at, count);
        else
            copy_pack<rule>(a, n, at, count);
    });
}

/* Of rules whose copy is one of the weight. */
struct plain_copy {
    enum { SHOWN = 0 }; /* states that it takes */
    template <typename numbers> DEVICE_MEMBER float shown(const numbers &, const float *own) {
        return own[0];
    }
};

#endif
