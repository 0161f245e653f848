/* Loops that only multiply and add, or move memory, to measure the machine's limits. */
#include "device/cpu/limits.h"
#include "device/cpu/simd.h"

/* Twelve independent sums hide the latency of the two multiply-add units. */
enum { SUMS = 12 };

static float multiply_add(int64_t rounds) {
    vector sums[SUMS], a = vector_set(1.0f), b = vector_set(0x1p-20f);
    float out[VECTOR], total = 0;
    for (int i = 0; i < SUMS; i++) sums[i] = vector_set((float)i);
    for (int64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < SUMS; i++) {
            sums[i] = vector_fma(a, b, sums[i]);
        }
    }
    for (int i = 0; i < SUMS; i++) {
        vector_store(out, sums[i]);
        total += out[0];
    }
    return total;
}

#if defined(KERNEL_BF16)
static float dot_bf16(int64_t rounds) {
    __m512 sums[SUMS];
    __m512i ones = _mm512_set1_epi32(0x3f803f80);
    __m512bh a = (__m512bh)ones;
    float total = 0;
    for (int i = 0; i < SUMS; i++) sums[i] = _mm512_set1_ps((float)i);
    for (int64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < SUMS; i++) {
            sums[i] = _mm512_dpbf16_ps(sums[i], a, a);
        }
    }
    for (int i = 0; i < SUMS; i++) total += _mm512_reduce_add_ps(sums[i]);
    return total;
}
#endif

/* a = b + c s (STREAM's triad) */
static void triad(float *restrict a, const float *restrict b, const float *restrict c,
                  int64_t count) {
    vector s = vector_set(0.5f);
    for (int64_t i = 0; i < count; i += VECTOR) {
        vector sum = vector_fma(vector_load(c + i), s, vector_load(b + i));
#if defined(KERNEL_ISA_avx512)
        _mm512_stream_ps(a + i, sum);
#else
        vector_store(a + i, sum);
#endif
    }
}

const cpu_limit_kernels KERNEL_NAME(cpu_limit_kernels) = {
    .multiply_add = multiply_add,
    .operations = SUMS * VECTOR * 2,
#if defined(KERNEL_BF16)
    .dot_bf16 = dot_bf16,
    .operations_bf16 = SUMS * 64,
#endif
    .triad = triad,
};
