/* Exact sums of squares (base/exact_sum.h). A thread keeps three digits from `low` on in registers:
 * numbers of the largest exponents that it met, and those some 2^17 times smaller. Others are added
 * to the block's sum at once. All sums are of integers, so atomic additions give the same bits in
 * any order. */
#include "device/cuda/vector/exact_squares_arguments.h"

#include "device/cuda/kernel.h"

struct exact_window {
    int low;
    uint64_t part[3]; /* of digits low and low + 1, and the rest */
};

DEVICE void add_word(int64_t *word, uint64_t value) {
    atomicAdd((unsigned long long *)word, (unsigned long long)value);
}

/* A block's numbers leave a digit below 2^61. */
DEVICE void flush_window(exact_window &w, base_exact_sum *sum) {
#pragma unroll
    for (int i = 0; i < 3; i++) {
        if (w.part[i]) add_word(&sum->digits[w.low + i], w.part[i]);
        w.part[i] = 0;
    }
}

DEVICE void raise_window(exact_window &w, uint32_t largest, base_exact_sum *sum) {
    int low = base_exact_exponent(largest) / 16 - 1;
    if (low <= w.low) return;
    flush_window(w, sum);
    w.low = low;
}

/* `bits`: of a finite number's size, at most what the window was raised to. */
DEVICE void add_square(exact_window &w, uint32_t bits, base_exact_sum *sum) {
    uint64_t m = base_exact_significand(bits), square = m * m;
    int exponent = base_exact_exponent(bits), at = 2 * exponent - 32 * w.low; /* below 64 */
    if (at >= 0) {
        uint64_t low = square << at;
        w.part[0] += low & 0xffffffff;
        w.part[1] += low >> 32;
        w.part[2] += square >> 1 >> (63 - at);
    } else if (square > 0) {
        exact_parts parts = base_exact_cut((int64_t)square, 2 * exponent % 32);
#pragma unroll
        for (int i = 0; i < 3; i++)
            add_word(&sum->digits[exponent / 16 + i], (uint64_t)parts.part[i]);
    }
}

template <class type> DEVICE void add_exact_squares(const exact_squares_arguments &a) {
    SHARED(base_exact_sum, sum, 1);
    int64_t *words = (int64_t *)sum, *to = (int64_t *)a.sum;
    int64_t first = (int64_t)blockIdx.x * EXACT_EACH;
    const typename type::stored *x = (const typename type::stored *)a.data + first;
    int count = a.count - first < EXACT_EACH ? (int)(a.count - first) : EXACT_EACH;
    int at = (int)threadIdx.x;
    exact_window w = {0, {0, 0, 0}};
    if (threadIdx.x < EXACT_WORDS) words[threadIdx.x] = 0;
    __syncthreads();
    for (int round = 0; round < EXACT_ROUNDS && at < count; round++) {
        uint32_t bits[EXACT_AHEAD], largest = 0;
#pragma unroll
        for (int i = 0; i < EXACT_AHEAD; i++, at += EXACT_THREADS)
            bits[i] = at < count ? base_float_to_bits(type::load(x[at])) & 0x7fffffff : 0;
#pragma unroll
        for (int i = 0; i < EXACT_AHEAD; i++) {
            if (bits[i] == 0x7f800000) add_word(&sum->infinite, 1);
            if (bits[i] > 0x7f800000) add_word(&sum->nan, 1);
            if (bits[i] >= 0x7f800000) bits[i] = 0;
            largest = bits[i] > largest ? bits[i] : largest;
        }
        raise_window(w, largest, sum);
#pragma unroll
        for (int i = 0; i < EXACT_AHEAD; i++) add_square(w, bits[i], sum);
    }
    flush_window(w, sum);
    __syncthreads();
    if (threadIdx.x == 0) base_exact_settle(sum);
    __syncthreads();
    if (threadIdx.x < EXACT_WORDS && words[threadIdx.x])
        add_word(&to[threadIdx.x], (uint64_t)words[threadIdx.x]);
}

KERNEL(exact_squares_fp32, exact_squares_arguments, EXACT_THREADS) {
    add_exact_squares<fp32>(a);
}

KERNEL(exact_squares_bf16, exact_squares_arguments, EXACT_THREADS) {
    add_exact_squares<bf16>(a);
}

KERNEL(exact_squares_fp16, exact_squares_arguments, EXACT_THREADS) {
    add_exact_squares<fp16>(a);
}
