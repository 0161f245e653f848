/* Adam with moments in 8 bits: opened, moved and closed with the operations of
 * device/cpu/vector/codes.h and kernels_adam.c in their order. A warp has the elements of a scale,
 * a thread a pack of them. Codes are looked up in shared memory. */
#include "base/code8.h"
#include "device/cuda/vector/adam_rule.h"

#define BASE_CODE8(which) DEVICE_TABLE base_code8 codes_##which
#include "base/code8_tables.h"

enum { CODED_STATES = 2, WARP = 32 };
static_assert(DEVICE_CODED == WARP * PACK, "the elements of a scale are those of a warp");

DEVICE void copy_codes(const base_code8 &from, base_code8 *to) {
    const uint32_t *words = (const uint32_t *)(const void *)&from;
    for (int i = (int)threadIdx.x; i < (int)(sizeof from / sizeof *words); i += PACK_THREADS)
        ((uint32_t *)(void *)to)[i] = words[i];
}

DEVICE bool eight_whole(const void *address, int count) {
    return count == PACK && ((uintptr_t)address & 7) == 0;
}

/* Codes from `count` on are 0. */
DEVICE void load_codes(const uint8_t *from, int count, uint8_t out[PACK]) {
    if (eight_whole(from, count)) {
        uint2 words = *(const uint2 *)(const void *)from;
#pragma unroll
        for (int i = 0; i < PACK; i++)
            out[i] = (uint8_t)((i < 4 ? words.x : words.y) >> (i % 4 * 8));
    } else {
#pragma unroll
        for (int i = 0; i < PACK; i++) out[i] = i < count ? from[i] : 0;
    }
}

DEVICE void store_codes(uint8_t *to, int count, const uint8_t from[PACK]) {
    if (eight_whole(to, count)) {
        uint2 words = {};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            words.x |= (uint32_t)from[i] << (i * 8);
            words.y |= (uint32_t)from[4 + i] << (i * 8);
        }
        *(uint2 *)(void *)to = words;
    } else {
#pragma unroll
        for (int i = 0; i < PACK; i++)
            if (i < count) to[i] = from[i];
    }
}

/* A NaN is not looked at, here and on the CPU. */
DEVICE float warp_largest(const float values[PACK], int count) {
    float largest = 0.0f;
#pragma unroll
    for (int i = 0; i < PACK; i++) {
        float size = fabsf(values[i]);
        if (i < count) largest = size > largest ? size : largest;
    }
    for (int apart = WARP / 2; apart > 0; apart /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, largest, apart);
        largest = other > largest ? other : largest;
    }
    return largest;
}

/* Of moments `k`: codes of all threads of a warp, and their scale. */
DEVICE void close_moments(const update_arguments &a, const base_code8 &map, int k, int64_t at,
                          int count, const float values[PACK]) {
    float scale = warp_largest(values, count);
    uint8_t codes[PACK];
    if (scale < 0x1p-126f) scale = 0.0f; /* whose inverse would not be finite */
    float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
#pragma unroll
    for (int i = 0; i < PACK; i++)
        codes[i] = (uint8_t)(base_code8_of(&map, values[i] * inverse) - map.zero);
    if (count > 0) store_codes((uint8_t *)a.kinds[1 + k].data + at, count, codes);
    if (threadIdx.x % WARP == 0)
        ((float *)a.kinds[1 + CODED_STATES + k].data)[at / DEVICE_CODED] = scale;
}

/* All threads of a warp call it; some of its last one may have no elements. */
DEVICE void coded_pack(const update_arguments &a, const adam_rule::numbers &n,
                       const base_code8 *maps, uint64_t key, int64_t at, int count) {
    pack_words gradient = load_pack(a.gradient.data, at, a.gradient.type, count);
    pack_words weights = load_pack(a.kinds[0].data, at, a.kinds[0].type, count);
    float g[PACK], p[PACK], moments[CODED_STATES][PACK];
    widen_pack(gradient, a.gradient.type, g);
    widen_pack(weights, a.kinds[0].type, p);
#pragma unroll
    for (int k = 0; k < CODED_STATES; k++) {
        uint8_t codes[PACK];
        load_codes((const uint8_t *)a.kinds[1 + k].data + at, count, codes);
        float scale = ((const float *)a.kinds[1 + CODED_STATES + k].data)[at / DEVICE_CODED];
#pragma unroll
        for (int i = 0; i < PACK; i++)
            moments[k][i] = maps[k].values[(uint8_t)(codes[i] + maps[k].zero)] * scale;
    }
#pragma unroll
    for (int i = 0; i < PACK; i++) {
        float own[1 + CODED_STATES] = {p[i], moments[0][i], moments[1][i]};
        adam_rule::apply(n, g[i], own);
        p[i] = own[0], moments[0][i] = own[1], moments[1][i] = own[2];
    }
    if (count > 0) {
        if (a.copy.data)
            store_pack(a.copy.data, at, a.copy.type, count, narrow_pack(p, a.copy.type));
        store_kind(a, 0, key, at, count, p);
    }
#pragma unroll
    for (int k = 0; k < CODED_STATES; k++) close_moments(a, maps[k], k, at, count, moments[k]);
}

KERNEL(adam_8bit, update_arguments, PACK_THREADS) {
    SHARED(base_code8, maps, CODED_STATES);
    bool update = a.step->update;
    if (!update && !a.copy.data) return;
    copy_codes(codes_signed, &maps[0]);
    copy_codes(codes_unsigned, &maps[1]);
    __syncthreads();
    adam_rule::numbers n = adam_rule::of_step(a);
    uint64_t key = key_of_kind(a.step, 0);
    int64_t first = (int64_t)blockIdx.x * UPDATE_PACKS * PACK_THREADS + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < UPDATE_PACKS; i++) {
        int64_t at = (first + i * PACK_THREADS) * PACK, left = a.count - at;
        if (at / DEVICE_CODED * DEVICE_CODED >= a.count) return; /* the whole warp */
        int count = left < 0 ? 0 : left < PACK ? (int)left : PACK;
        if (update)
            coded_pack(a, n, maps, key, at, count);
        else if (count > 0)
            copy_pack<adam_rule>(a, n, at, count);
    }
}
