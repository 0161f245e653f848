/* The order of device_tree_sum_typed: sums worked out by hand in which another order gives other
 * bits, and every type at 1 to 17 ranks against the rule in double precision, element by element.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/half.h"
#include "base/random.h"
#include "device/tree_sum.h"

enum { MOST = 17, LENGTH = 1029 }; /* two whole blocks and a part of one */

typedef struct kind {
    base_dtype type, sum;
    int bits; /* of a sum's significand */
} kind;

static const kind kinds[] = {{BASE_FP32, BASE_FP32, 24},
                             {BASE_BF16, BASE_FP32, 24},
                             {BASE_FP16, BASE_FP32, 24},
                             {BASE_BF16, BASE_BF16, 8},
                             {BASE_FP16, BASE_FP16, 11}};
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef union row {
    float wide[LENGTH];
    uint16_t narrow[LENGTH];
} row;

static row data[MOST];

static void put(base_dtype type, row *to, int64_t i, double value) {
    if (type == BASE_FP32)
        to->wide[i] = (float)value;
    else
        to->narrow[i] = type == BASE_FP16 ? base_half_from_float((float)value)
                                          : base_bf16_from_float((float)value);
}

static double get(base_dtype type, const row *from, int64_t i) {
    if (type == BASE_FP32) return (double)from->wide[i];
    return (double)(type == BASE_FP16 ? base_half_to_float(from->narrow[i])
                                      : base_bf16_to_float(from->narrow[i]));
}

static void sum_rows(const kind *k, int32_t count, int64_t elements, row *out) {
    const void *rows[MOST];
    for (int32_t r = 0; r < count; r++) rows[r] = &data[r];
    device_tree_sum_typed(k->type, k->sum, rows, count, elements, out);
}

/* B stands for one, u for half of what one more than B would need to be told from B, b and v for
 * the same with a minus before them. B + u is B, and so is B + u + u from left to right. */
static double letter(char name, int bits) {
    double unit = ldexp(1, -bits);
    return name == 'B' ? 1 : name == 'b' ? -1 : name == 'u' ? unit : -unit;
}

typedef struct by_hand {
    const char *ranks; /* a letter each */
    int units;         /* of u */
    bool has_one;      /* and B before them */
} by_hand;

static const by_hand sums[] = {
    {"u", 1, false},            /* alone */
    {"Bu", 0, true},            /* B + u */
    {"Buu", 0, true},           /* (B + u) + u; from the right B + 2u */
    {"uuB", 2, true},           /* (u + u) + B */
    {"Buub", 1, false},         /* (B + u) + (u + b); from left to right 0 */
    {"Buuuu", 0, true},         /* odd: from left to right */
    {"Buuuub", 2, false},       /* ((B + u) + u) + ((u + u) + b); by pairs 3 */
    {"Buuuuuu", 0, true},       /* odd */
    {"Buubuuuu", 5, false},     /* halves, and their halves */
    {"uuuuBuuuu", 4, true},     /* odd: (4u + B) + u ... */
    {"Buuuuuuuub", 4, false},   /* 5 + 5: B and 4u + b */
    {"BuuuubBuuuub", 4, false}, /* 6 + 6, each 3 + 3 */
};

static void test_by_hand(void **state) {
    (void)state;
    for (size_t s = 0; s < sizeof sums / sizeof *sums; s++) {
        for (int k = 0; k < KINDS; k++) {
            row out;
            int32_t count = (int32_t)strlen(sums[s].ranks);
            double unit = ldexp(1, -kinds[k].bits);
            for (int32_t r = 0; r < count; r++)
                put(kinds[k].type, &data[r], 0, letter(sums[s].ranks[r], kinds[k].bits));
            sum_rows(&kinds[k], count, 1, &out);
            double wanted = (sums[s].has_one ? 1 : 0) + sums[s].units * unit;
            if (get(kinds[k].sum, &out, 0) != wanted)
                fail_msg("%s, kind %d: %.10g, not %.10g", sums[s].ranks, k,
                         get(kinds[k].sum, &out, 0), wanted);
        }
    }
}

/* To nearest even at so many bits; what is added here stays far from subnormal and infinite. */
static double rounded(double value, int bits) {
    int exponent;
    double fraction = frexp(value, &exponent);
    return ldexp(nearbyint(ldexp(fraction, bits)), exponent - bits);
}

static double from_left(const kind *k, int32_t first, int32_t count, int64_t i) {
    double sum = get(k->type, &data[first], i);
    for (int32_t r = first + 1; r < first + count; r++)
        sum = rounded(sum + get(k->type, &data[r], i), k->bits);
    return sum;
}

static double by_halves(const kind *k, int32_t first, int32_t count, int64_t i) {
    if (count % 2) return from_left(k, first, count, i);
    double left = by_halves(k, first, count / 2, i);
    return rounded(left + by_halves(k, first + count / 2, count / 2, i), k->bits);
}

static void fill(base_dtype type, int32_t count) {
    for (int32_t r = 0; r < count; r++) {
        for (int64_t i = 0; i < LENGTH; i++) {
            base_random4 random = base_philox(11, (uint64_t)i, (uint64_t)r);
            float fraction = base_uniform(random.v[0]) - 0.5f;
            put(type, &data[r], i, ldexp((double)fraction, (int)(random.v[1] % 25) - 12));
        }
    }
}

/* Into a place of its own, and into a row, as a rank reduces into its own part. */
static void test_rule(void **state) {
    (void)state;
    static row out;
    static double wanted[LENGTH];
    for (int k = 0; k < KINDS; k++) {
        for (int32_t count = 1; count <= MOST; count++) {
            int64_t matters = 0;
            fill(kinds[k].type, count);
            for (int64_t i = 0; i < LENGTH; i++) {
                wanted[i] = by_halves(&kinds[k], 0, count, i);
                matters += wanted[i] != from_left(&kinds[k], 0, count, i);
            }
            if (count % 2 == 0 && count > 2) assert_true(matters > 10);
            sum_rows(&kinds[k], count, LENGTH, &out);
            for (int64_t i = 0; i < LENGTH; i++)
                assert_true(get(kinds[k].sum, &out, i) == wanted[i]);
            if (kinds[k].sum != kinds[k].type) continue;
            row *last = &data[count - 1];
            sum_rows(&kinds[k], count, LENGTH, last);
            for (int64_t i = 0; i < LENGTH; i++)
                assert_true(get(kinds[k].sum, last, i) == wanted[i]);
        }
    }
}

/* Nothing is written past the last element, nor before there is one. */
static void test_lengths(void **state) {
    (void)state;
    static const int64_t lengths[] = {0, 1, 511, 512, 513, 1024};
    static row out;
    for (int k = 0; k < KINDS; k++) {
        size_t size = (size_t)base_dtype_bytes(kinds[k].sum);
        fill(kinds[k].type, 4);
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            memset(&out, 0xa5, sizeof out);
            sum_rows(&kinds[k], 4, lengths[l], &out);
            const unsigned char *bytes = (const unsigned char *)&out;
            for (size_t b = (size_t)lengths[l] * size; b < LENGTH * size; b++)
                assert_int_equal(bytes[b], 0xa5);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_by_hand), cmocka_unit_test(test_rule),
                                       cmocka_unit_test(test_lengths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
