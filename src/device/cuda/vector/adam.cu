/* Adam, with the operations of device/cpu/vector/kernels_flat.c in their order. A thread takes
 * several packs: what it computes from the step's numbers, and the three keys for states that are
 * rounded stochastically, take as long as a pack. */
#include "device/cuda/vector/optimizer_arguments.h"
#include "device/cuda/vector/packs.h"

typedef struct adam_numbers {
    float scale, beta1, beta2, rest1, rest2, epsilon, shrink, l2, rate, root;
} adam_numbers;

DEVICE adam_numbers numbers_of_step(const adam_arguments &a) {
    const device_step *s = a.step;
    adam_numbers n;
    n.scale = s->update_scale;
    n.beta1 = s->beta1;
    n.beta2 = s->beta2;
    n.rest1 = (float)(1.0 - (double)n.beta1);
    n.rest2 = (float)(1.0 - (double)n.beta2);
    n.epsilon = a.epsilon;
    n.shrink = a.decoupled ? 1.0f - s->learning_rate * a.weight_decay : 1.0f;
    n.l2 = a.decoupled ? 0.0f : a.weight_decay;
    n.rate = s->learning_rate / s->correction1;
    n.root = 1.0f / sqrtf(s->correction2);
    return n;
}

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

DEVICE pack_words drawn_pack(const float from[PACK], const uint16_t draws[PACK]) {
    pack_words words = {};
#pragma unroll
    for (int i = 0; i < PACK; i++)
        words.of[i / 2] |= (uint32_t)base_bf16_drawn(from[i], draws[i]) << (i % 2 * 16);
    return words;
}

DEVICE void update_pack(const adam_arguments &a, const adam_numbers &n,
                        const uint64_t keys[ADAM_STATES], int64_t at, int count) {
    pack_words loaded[ADAM_STATES],
        gradient = load_pack(a.gradient.data, at, a.gradient.type, count);
    float g[PACK], state[ADAM_STATES][PACK];
#pragma unroll
    for (int k = 0; k < ADAM_STATES; k++)
        loaded[k] = load_pack(a.states[k].data, at, a.states[k].type, count);
    widen_pack(gradient, a.gradient.type, g);
#pragma unroll
    for (int k = 0; k < ADAM_STATES; k++) widen_pack(loaded[k], a.states[k].type, state[k]);
#pragma unroll
    for (int i = 0; i < PACK; i++) {
        float p = state[ADAM_WEIGHTS][i], gi = g[i] * n.scale + n.l2 * p;
        float m = n.beta1 * state[ADAM_MOMENT1][i] + n.rest1 * gi;
        float v = n.beta2 * state[ADAM_MOMENT2][i] + n.rest2 * (gi * gi);
        state[ADAM_MOMENT1][i] = m;
        state[ADAM_MOMENT2][i] = v;
        state[ADAM_WEIGHTS][i] = p * n.shrink - n.rate * m / (sqrtf(v) * n.root + n.epsilon);
    }
    if (a.copy.data)
        store_pack(a.copy.data, at, a.copy.type, count,
                   narrow_pack(state[ADAM_WEIGHTS], a.copy.type));
#pragma unroll
    for (int k = 0; k < ADAM_STATES; k++) {
        if (a.states[k].type == BASE_BF16) {
            uint16_t draws[PACK];
            pack_draws(keys[k], a.element + (uint64_t)at, draws);
            store_pack(a.states[k].data, at, BASE_BF16, count, drawn_pack(state[k], draws));
        } else {
            store_pack(a.states[k].data, at, BASE_FP32, count, narrow_pack(state[k], BASE_FP32));
        }
    }
}

/* Transfers are not left out with an update: what they write must be what was there. */
DEVICE void copy_pack(const adam_arguments &a, int64_t at, int count) {
    float weights[PACK];
    int type = a.states[ADAM_WEIGHTS].type;
    widen_pack(load_pack(a.states[ADAM_WEIGHTS].data, at, type, count), type, weights);
    store_pack(a.copy.data, at, a.copy.type, count, narrow_pack(weights, a.copy.type));
}

KERNEL(adam, adam_arguments, PACK_THREADS) {
    bool update = a.step->update;
    if (!update && !a.copy.data) return;
    adam_numbers n = numbers_of_step(a);
    uint64_t keys[ADAM_STATES] = {};
#pragma unroll
    for (int k = 0; k < ADAM_STATES; k++) { /* at coordinates that dropout does not use */
        if (a.states[k].type == BASE_BF16)
            keys[k] = base_random_key(a.step->seed, (uint64_t)a.step->step,
                                      (uint64_t)1 << 63 | (uint64_t)k);
    }
    int64_t first = (int64_t)blockIdx.x * ADAM_PACKS * PACK_THREADS + threadIdx.x;
#pragma unroll 1
    for (int p = 0; p < ADAM_PACKS; p++) {
        int64_t at = (first + p * PACK_THREADS) * PACK, left = a.count - at;
        if (left <= 0) return;
        int count = left < PACK ? (int)left : PACK;
        if (update)
            update_pack(a, n, keys, at, count);
        else
            copy_pack(a, at, count);
    }
}
