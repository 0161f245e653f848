/* Loops that do nothing but multiply and add, or move memory: what the machine can do at most. */
#include "device/cpu/lanes.h"
#include "device/cpu/limits.h"
#include "device/cpu/wide.h"

/* Twelve independent sums hide the latency of the two multiply-add units. */
enum { SUMS = 12 };

static float multiply_add(int64_t rounds) {
    wide sums[SUMS], a = wide_set(1.0f), b = wide_set(0x1p-20f);
    float out[16], total = 0;
    for (int i = 0; i < SUMS; i++) sums[i] = wide_set((float)i);
    for (int64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < SUMS; i++) {
            sums[i] = wide_fma(a, b, sums[i]);
        }
    }
    for (int i = 0; i < SUMS; i++) {
        wide_store(out, sums[i]);
        total += out[0];
    }
    return total;
}

#if defined(KERNEL_ISA_avx512)
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
    wide s = wide_set(0.5f);
    for (int64_t i = 0; i < count; i += 16) {
        wide sum = wide_fma(wide_load(c + i), s, wide_load(b + i));
#if defined(KERNEL_ISA_avx512)
        _mm512_stream_ps(a + i, sum);
#else
        wide_store(a + i, sum);
#endif
    }
}

const cpu_limit_kernels KERNEL(cpu_limit_kernels) = {
    .multiply_add = multiply_add,
    .operations = SUMS * 32,
#if defined(KERNEL_ISA_avx512)
    .dot_bf16 = dot_bf16,
    .operations_bf16 = SUMS * 64,
#endif
    .triad = triad,
};
