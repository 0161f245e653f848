/* LAMB, with the operations of device/cpu/vector/kernels_lamb.c and lamb.c in their order: moments
 * and sums of squares of a weight; its trust ratio; the weight. */
#include "device/cuda/vector/adam_rule.h"
#include "device/cuda/vector/exact_window.h"

struct lamb_numbers : moment_numbers {
    float decay, first, rate;
};

DEVICE lamb_numbers lamb_numbers_of(const update_arguments &a) {
    lamb_numbers n;
    set_moment_numbers(a, &n);
    n.decay = a.weight_decay;
    n.first = 1.0f / a.step->correction1;
    n.rate = a.trust ? update_rate(a) * *a.trust : 0.0f;
    return n;
}

DEVICE float lamb_direction(const lamb_numbers &n, float p, float m, float v) {
    return m * n.first / (sqrtf(v) * n.root + n.epsilon) + n.decay * p;
}

DEVICE void add_squares(exact_window &w, const float values[PACK], int count, base_exact_sum *sum) {
    uint32_t bits[PACK];
#pragma unroll
    for (int i = 0; i < PACK; i++)
        bits[i] = i < count ? base_float_to_bits(values[i]) & 0x7fffffff : 0;
    add_numbers<PACK>(w, bits, sum);
}

/* `keys`: of the moments. */
DEVICE void begin_pack(const update_arguments &a, const lamb_numbers &n, const uint64_t keys[2],
                       int64_t at, int count, exact_window windows[2], base_exact_sum *sums) {
    float g[PACK], p[PACK], m[PACK], v[PACK], direction[PACK];
    widen_pack(load_pack(a.gradient.data, at, a.gradient.type, count), a.gradient.type, g);
    load_kind(a, 0, at, count, p);
    load_kind(a, 1, at, count, m);
    load_kind(a, 2, at, count, v);
#pragma unroll
    for (int i = 0; i < PACK; i++) {
        move_moments(n, g[i] * n.scale, &m[i], &v[i]);
        direction[i] = lamb_direction(n, p[i], m[i], v[i]);
    }
    store_kind(a, 1, keys[0], at, count, m);
    store_kind(a, 2, keys[1], at, count, v);
    add_squares(windows[0], p, count, &sums[0]);
    add_squares(windows[1], direction, count, &sums[1]);
}

KERNEL(lamb_begin, update_arguments, PACK_THREADS) {
    SHARED(base_exact_sum, sums, 2);
    if (!a.step->update) return;
    exact_window windows[2] = {};
    lamb_numbers n = lamb_numbers_of(a);
    uint64_t keys[2] = {key_of_kind(a.step, 1), key_of_kind(a.step, 2)};
    clear_block_sums(sums, 2);
    each_pack(a, [&](int64_t at, int count) { begin_pack(a, n, keys, at, count, windows, sums); });
#pragma unroll
    for (int s = 0; s < 2; s++) flush_window(windows[s], &sums[s]);
    add_block_sums(sums, 2, a.sums);
}

/* A thread a word of the sums; then one a norm. */
KERNEL(lamb_trust, lamb_trust_arguments, LAMB_TRUST_THREADS) {
    SHARED(base_exact_sum, sums, 2);
    SHARED(double, norms, 2);
    if (threadIdx.x < 2 * EXACT_WORDS) {
        int64_t word = 0;
        for (int64_t part = 0; part < a.parts; part++)
            word += a.sums[part * a.stride + threadIdx.x];
        ((int64_t *)sums)[threadIdx.x] = word;
    }
    __syncthreads();
    if (threadIdx.x < 2) {
        base_exact_settle(&sums[threadIdx.x]);
        norms[threadIdx.x] = sqrt(base_exact_round_settled(&sums[threadIdx.x]));
    }
    __syncthreads();
    if (threadIdx.x > 0) return;
    double least = (double)a.least, most = (double)a.most;
    bool none = !(norms[0] > 0) || !(norms[1] > 0);
    *a.trust = none ? 1.0f : (float)fmax(fmin(norms[0] / norms[1], most), least);
}

DEVICE void lamb_pack(const update_arguments &a, const lamb_numbers &n, uint64_t key, int64_t at,
                      int count) {
    float p[PACK], m[PACK], v[PACK];
    load_kind(a, 0, at, count, p);
    load_kind(a, 1, at, count, m);
    load_kind(a, 2, at, count, v);
#pragma unroll
    for (int i = 0; i < PACK; i++) p[i] -= n.rate * lamb_direction(n, p[i], m[i], v[i]);
    if (a.average) average_pack(a, p, at, count);
    if (a.copy.data) store_pack(a.copy.data, at, a.copy.type, count, narrow_pack(p, a.copy.type));
    store_kind(a, 0, key, at, count, p);
}

struct lamb_copy : plain_copy {
    typedef lamb_numbers numbers;
};

KERNEL(lamb, update_arguments, PACK_THREADS) {
    bool update = a.step->update;
    if (!update && !a.copy.data) return;
    lamb_numbers n = lamb_numbers_of(a);
    uint64_t key = key_of_kind(a.step, 0);
    each_pack(a, [&](int64_t at, int count) {
        if (update)
            lamb_pack(a, n, key, at, count);
        else
            copy_pack<lamb_copy>(a, n, at, count);
    });
}
