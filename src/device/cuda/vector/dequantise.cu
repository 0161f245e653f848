/* Values of codes of 4 bits (base/nf4.h), with the operations of base_nf4_decode: a value times the
 * scale of its block, rounded once. Codes are looked up in shared memory: 16 words in 16 banks. */
#include "device/cuda/vector/dequantise_arguments.h"

#include "base/code8.h"
#include "device/cuda/vector/packs.h"

#define BASE_NF4_TABLE DEVICE_TABLE float nf4_values[16]
#include "base/nf4_table.h"
#define BASE_CODE8(which) DEVICE_TABLE base_code8 nf4_codes_##which
#include "base/code8_tables.h"

enum { NF4_AHEAD = 4, NF4_PACKS = BASE_NF4_RECORD / PACK / DEQUANTISE_THREADS };
static_assert(NF4_PACKS % NF4_AHEAD == 0, "loads ahead");

DEVICE uint32_t load_word(const uint8_t *from, bool wide) {
    if (wide) return *(const uint32_t *)(const void *)from;
    return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

DEVICE float open_scale(const dequantise_arguments &a, const uint8_t *record, int block) {
    const uint8_t *from = record + BASE_NF4_CODES;
    if (!a.doubled) return base_float_from_bits(load_word(from + 4 * block, a.wide));
    float most = base_float_from_bits(load_word(from + BASE_NF4_SCALES, a.wide));
    float mean = base_float_from_bits(load_word(from + BASE_NF4_SCALES + 4, a.wide));
    return nf4_codes_signed.values[from[block]] * most + mean;
}

/* The first code of a byte is in its upper half. */
DEVICE void open_codes(uint32_t word, const float *values, float scale, float out[PACK]) {
#pragma unroll
    for (int i = 0; i < PACK; i++)
        out[i] = values[word >> (i / 2 * 8 + (i % 2 ? 0 : 4)) & 15] * scale;
}

template <int type> DEVICE void dequantise(const dequantise_arguments &a) {
    SHARED(float, values, 16);
    SHARED(float, scales, BASE_NF4_SCALES);
    const uint8_t *record = a.records + (int64_t)blockIdx.x * a.stride;
    int64_t begin = (int64_t)blockIdx.x * BASE_NF4_RECORD;
    int own = (int)threadIdx.x;
    if (own < 16) values[own] = nf4_values[own];
    scales[own] = open_scale(a, record, own);
    __syncthreads();
#pragma unroll 1
    for (int first = own; first < NF4_PACKS * DEQUANTISE_THREADS;
         first += NF4_AHEAD * DEQUANTISE_THREADS) {
        uint32_t words[NF4_AHEAD];
#pragma unroll
        for (int i = 0; i < NF4_AHEAD; i++)
            words[i] = load_word(record + (first + i * DEQUANTISE_THREADS) * (PACK / 2), a.wide);
#pragma unroll
        for (int i = 0; i < NF4_AHEAD; i++) {
            int at = (first + i * DEQUANTISE_THREADS) * PACK;
            float out[PACK];
            open_codes(words[i], values, scales[at / BASE_NF4_BLOCK], out);
            store_pack(a.to, begin + at, type, PACK, narrow_pack(out, type));
        }
    }
}

KERNEL(dequantise_fp32, dequantise_arguments, DEQUANTISE_THREADS) {
    dequantise<BASE_FP32>(a);
}

KERNEL(dequantise_bf16, dequantise_arguments, DEQUANTISE_THREADS) {
    dequantise<BASE_BF16>(a);
}

KERNEL(dequantise_fp16, dequantise_arguments, DEQUANTISE_THREADS) {
    dequantise<BASE_FP16>(a);
}
