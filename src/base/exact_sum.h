/* The exact sum of squares of fp32, bf16 and fp16 numbers, as an integer of 608 bits and more: no
 * addition rounds, so neither the order of elements nor a cut over threads or ranks changes a bit.
 * Only base_exact_round rounds, once.
 *
 * The norm of gradients is such a sum: each rank adds the squares of what it owns
 * (DEVICE_EXACT_SQUARES), sums of ranks are added by their words, and the total is rounded
 * (device_decide). Kernels for GPUs include this header. */
#ifndef BASE_EXACT_SUM_H
#define BASE_EXACT_SUM_H

#include <stdint.h>

#include "base/half.h"
#include "base/inline.h"

/* A number of exponent field e (that of a subnormal taken as 1) is m x 2^(e - 150), m below 2^24.
 * Its square is m^2 x 2^(2e), in units of 2^-300. */
enum {
    EXACT_UNIT = -300,
    EXACT_DIGITS = 19, /* 556 bits of a square, and 52 for carries before the last digit is full */
    EXACT_WORDS = EXACT_DIGITS + 2
};

/* Digit d counts multiples of 2^(32 d - 300), and has 32 bits more than that for carries. Zeros are
 * the empty sum. It takes 2^30 additions until it must be settled; settled, it is below 2^83 of the
 * largest squares. Settled sums add up by their words, up to 2^30 of them. */
typedef struct base_exact_sum {
    int64_t digits[EXACT_DIGITS];
    int64_t infinite, nan; /* more than 0: there were such elements */
} base_exact_sum;

/* The three digits of count x 2^shift, shift below 32; the last one has the sign of count. */
typedef struct exact_parts {
    int64_t part[3];
} exact_parts;

BASE_INLINE exact_parts base_exact_cut(int64_t count, int shift) {
    uint64_t low = (uint64_t)count << shift;
    exact_parts parts = {
        {(int64_t)(low & 0xffffffff), (int64_t)(low >> 32), count >> 32 >> (32 - shift)}};
    return parts;
}

/* Adds count x 2^(position - 300), position from 0 to 543. */
BASE_INLINE void base_exact_add(base_exact_sum *sum, int64_t count, int position) {
    exact_parts parts = base_exact_cut(count, position % 32);
    for (int i = 0; i < 3; i++) sum->digits[position / 32 + i] += parts.part[i];
}

/* The exponent field and m of a finite number. */
BASE_INLINE int base_exact_exponent(uint32_t bits) {
    int field = (int)(bits >> 23 & 0xff);
    return field > 0 ? field : 1;
}

BASE_INLINE uint32_t base_exact_significand(uint32_t bits) {
    return (bits & 0x7fffff) | (bits & 0x7f800000 ? 0x800000u : 0u);
}

/* Adds a square. Subnormal numbers count, whatever the thread's floating-point mode. */
BASE_INLINE void base_exact_square(base_exact_sum *sum, float value) {
    uint32_t bits = base_float_to_bits(value) & 0x7fffffff;
    uint64_t m = base_exact_significand(bits);
    sum->infinite += bits == 0x7f800000;
    sum->nan += bits > 0x7f800000;
    if (bits < 0x7f800000) base_exact_add(sum, (int64_t)(m * m), 2 * base_exact_exponent(bits));
}

/* Carries: the same sum, with all digits but the last in [0, 2^32), and flags of 0 or 1. Equal sums
 * are equal bytes then. */
BASE_INLINE void base_exact_settle(base_exact_sum *sum) {
    int64_t carry = 0;
    for (int d = 0; d < EXACT_DIGITS - 1; d++) {
        int64_t value = sum->digits[d] + carry;
        sum->digits[d] = value & 0xffffffff;
        carry = value >> 32;
    }
    sum->digits[EXACT_DIGITS - 1] += carry;
    sum->infinite = sum->infinite > 0;
    sum->nan = sum->nan > 0;
}

/* Adds a settled sum, by words. */
BASE_INLINE void base_exact_merge(base_exact_sum *sum, const base_exact_sum *other) {
    for (int d = 0; d < EXACT_DIGITS; d++) sum->digits[d] += other->digits[d];
    sum->infinite += other->infinite;
    sum->nan += other->nan;
}

/* A digit of a settled sum: the last one is two, and those before the first are 0. */
BASE_INLINE uint64_t base_exact_digit(const base_exact_sum *sum, int d) {
    if (d < 0) return 0;
    int64_t digit = d < EXACT_DIGITS ? sum->digits[d] : sum->digits[EXACT_DIGITS - 1] >> 32;
    return (uint64_t)digit & 0xffffffff;
}

BASE_INLINE double base_exact_from_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* 64 bits, the first of them set and the last one for all that follow, rounded to 53; the last
 * of those stands for 2^(position - 300). No square and no sum is subnormal as a double. */
BASE_INLINE double base_exact_scale(uint64_t bits, int position) {
    uint64_t kept = bits >> 11, rest = bits & 0x7ff;
    uint64_t exponent = (uint64_t)(position + EXACT_UNIT + 1023);
    kept += rest > 0x400 || (rest == 0x400 && kept % 2 == 1);
    return (double)kept * base_exact_from_bits(exponent << 52);
}

/* The nearest double to a settled sum, ties to even; NaN if an element was one, else infinite if
 * one was. */
BASE_INLINE double base_exact_round_settled(const base_exact_sum *sum) {
    int top = EXACT_DIGITS, zeros = 0;
    if (sum->nan) return base_exact_from_bits(0x7ff8000000000000);
    if (sum->infinite) return base_exact_from_bits(0x7ff0000000000000);
    while (top >= 0 && base_exact_digit(sum, top) == 0) top--;
    if (top < 0) return 0;
    uint64_t first = base_exact_digit(sum, top), third = base_exact_digit(sum, top - 2);
    while (first << zeros >> 31 == 0) zeros++;
    uint64_t bits = (first << 32 | base_exact_digit(sum, top - 1)) << zeros | third << zeros >> 32;
    uint64_t below = third << zeros & 0xffffffff;
    for (int d = 0; d < top - 2; d++) below |= base_exact_digit(sum, d);
    return base_exact_scale(bits | (below != 0), 32 * (top - 1) - zeros + 11);
}

/* The same for any sum. */
BASE_INLINE double base_exact_round(const base_exact_sum *sum) {
    base_exact_sum settled = *sum;
    base_exact_settle(&settled);
    return base_exact_round_settled(&settled);
}

#endif
