#include "base/exact_sum.h"

#include <math.h>

enum { DIGIT = 32 };

void base_exact_merge(base_exact_sum *sum, const base_exact_sum *other) {
    for (int d = 0; d < EXACT_DIGITS; d++) sum->digits[d] += other->digits[d];
    sum->infinite += other->infinite;
    sum->nan += other->nan;
}

/* The digits of a settled sum, the last one as two. */
static void spread(const base_exact_sum *sum, uint32_t digits[EXACT_DIGITS + 1]) {
    for (int d = 0; d < EXACT_DIGITS; d++) digits[d] = (uint32_t)sum->digits[d];
    digits[EXACT_DIGITS] = (uint32_t)(sum->digits[EXACT_DIGITS - 1] >> DIGIT);
}

/* Rounds 64 bits, the first of them set, to 53; the last bit also stands for all that follow. */
static uint64_t round_to_double(uint64_t bits) {
    uint64_t kept = bits >> 11, rest = bits & 0x7ff;
    return kept + (rest > 0x400 || (rest == 0x400 && kept % 2 == 1));
}

double base_exact_round(const base_exact_sum *sum) {
    base_exact_sum settled = *sum;
    uint32_t digits[EXACT_DIGITS + 1];
    int top = EXACT_DIGITS;
    base_exact_settle(&settled);
    if (settled.nan) return (double)NAN;
    if (settled.infinite) return (double)INFINITY;
    spread(&settled, digits);
    while (top >= 0 && digits[top] == 0) top--;
    if (top < 0) return 0;
    uint64_t second = top >= 1 ? digits[top - 1] : 0, third = top >= 2 ? digits[top - 2] : 0;
    int zeros = __builtin_clz(digits[top]);
    uint64_t bits = ((uint64_t)digits[top] << DIGIT | second) << zeros | third << zeros >> DIGIT;
    uint64_t below = third << zeros & 0xffffffff;
    for (int d = 0; d < top - 2; d++) below |= digits[d];
    int position = DIGIT * (top - 1) - zeros + 11; /* of the last of 53 bits */
    return ldexp((double)round_to_double(bits | (below != 0)), position + EXACT_UNIT);
}
