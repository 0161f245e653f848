/* Exact sums of squares (base/exact_sum.h) of a block's numbers. A thread keeps three digits from
 * `low` on in registers: numbers of the largest exponents that it met, and those some 2^17 times
 * smaller. Others are added to the block's sum at once. All sums are of integers, so atomic
 * additions give the same bits in any order. A block adds at most 2^14 numbers before it settles
 * its sum. */
#ifndef CUDA_EXACT_WINDOW_H
#define CUDA_EXACT_WINDOW_H

#include "base/exact_sum.h"
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

/* Called by all threads of a block before its first number. */
DEVICE void clear_block_sums(base_exact_sum *sums, uint32_t count) {
    if (threadIdx.x < count * EXACT_WORDS) ((int64_t *)sums)[threadIdx.x] = 0;
    __syncthreads();
}

/* Adds a block's sums to those at `to`. Each thread of the block has flushed its windows. */
DEVICE void add_block_sums(base_exact_sum *sums, uint32_t count, int64_t *to) {
    int64_t *words = (int64_t *)sums;
    __syncthreads();
    if (threadIdx.x < count) base_exact_settle(&sums[threadIdx.x]);
    __syncthreads();
    if (threadIdx.x < count * EXACT_WORDS && words[threadIdx.x])
        add_word(&to[threadIdx.x], (uint64_t)words[threadIdx.x]);
}

/* Adds `count` numbers of these bits without their signs; 0 adds nothing. */
template <int count>
DEVICE void add_numbers(exact_window &w, uint32_t bits[count], base_exact_sum *sum) {
    uint32_t largest = 0;
#pragma unroll
    for (int i = 0; i < count; i++) {
        if (bits[i] == 0x7f800000) add_word(&sum->infinite, 1);
        if (bits[i] > 0x7f800000) add_word(&sum->nan, 1);
        if (bits[i] >= 0x7f800000) bits[i] = 0;
        largest = bits[i] > largest ? bits[i] : largest;
    }
    raise_window(w, largest, sum);
#pragma unroll
    for (int i = 0; i < count; i++) add_square(w, bits[i], sum);
}

#endif
