/* Random numbers: Philox 4x32-10 against the known answers of Random123 (tests/kat_vectors there),
 * and how its numbers are spread. All of it is a function of keys: there is no luck in this test.
 */
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_known_answers(void **state) {
    (void)state;
    static const struct {
        uint64_t key, low, high;
        uint32_t answer[4];
    } known[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822, /* the digits of pi */
         0x85a308d3243f6a88,
         0x0370734413198a2e,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        base_random4 r = base_philox(known[i].key, known[i].low, known[i].high);
        for (int j = 0; j < 4; j++) assert_int_equal(r.v[j], known[i].answer[j]);
    }
}

/* A bit more or less in any argument changes about half of the bits. */
static void test_avalanche(void **state) {
    (void)state;
    base_random4 from = base_philox(1, 2, 3);
    for (int bit = 0; bit < 192; bit++) {
        uint64_t flip = (uint64_t)1 << bit % 64;
        base_random4 to =
            base_philox(1 ^ (bit / 64 == 0 ? flip : 0), 2 ^ (bit / 64 == 1 ? flip : 0),
                        3 ^ (bit / 64 == 2 ? flip : 0));
        int changed = 0;
        for (int j = 0; j < 4; j++) changed += __builtin_popcount(from.v[j] ^ to.v[j]);
        assert_in_range(changed, 64 - 28, 64 + 28); /* five standard deviations */
    }
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Keys of neighbouring coordinates are all different. */
static void test_keys(void **state) {
    (void)state;
    enum { SIDE = 24, COUNT = SIDE * SIDE * SIDE };
    static uint64_t keys[COUNT];
    int count = 0;
    for (uint64_t seed = 0; seed < SIDE; seed++)
        for (uint64_t a = 0; a < SIDE; a++)
            for (uint64_t b = 0; b < SIDE; b++) keys[count++] = base_random_key(seed, a, b);
    base_random4 r = base_philox(5, 6, 7);
    assert_int_equal(base_random_key(5, 6, 7), (uint64_t)r.v[1] << 32 | r.v[0]);
    qsort(keys, COUNT, sizeof *keys, by_value);
    for (int i = 1; i < COUNT; i++) assert_true(keys[i] != keys[i - 1]);
}

static void test_uniform(void **state) {
    (void)state;
    enum { COUNT = 100000, BINS = 10 };
    double sum = 0, squares = 0;
    int bins[BINS] = {0};
    assert_true(base_uniform(0) == 0);
    assert_true(base_uniform(255) == 0);
    assert_true(base_uniform(256) == 0x1p-24f);
    assert_true(base_uniform(UINT32_MAX) == 1 - 0x1p-24f);
    for (uint64_t i = 0; i < COUNT; i++) {
        float value = base_uniform(base_philox(9, i, 0).v[i % 4]);
        assert_true(value >= 0);
        assert_true(value < 1);
        sum += (double)value;
        squares += (double)value * (double)value;
        bins[(int)(value * BINS)]++;
    }
    assert_true(fabs(sum / COUNT - 0.5) < 0.005);
    assert_true(fabs(squares / COUNT - 1.0 / 3) < 0.005);
    for (int i = 0; i < BINS; i++) assert_in_range(bins[i], COUNT / BINS - 500, COUNT / BINS + 500);
}

/* Mean, width and tails of the normal distribution, and no relation within pairs. */
static void test_normal(void **state) {
    (void)state;
    enum { COUNT = 100000 };
    static const double within[] = {0.682689, 0.954500, 0.997300};
    double sum = 0, squares = 0, cubes = 0, products = 0, pair[2];
    int inside[3] = {0};
    for (uint64_t i = 0; i < COUNT; i++) {
        double value = base_normal(3, i);
        base_normal_pair(3, i / 2, pair);
        assert_true(value == pair[i % 2]);
        assert_true(isfinite(value));
        sum += value;
        squares += value * value;
        cubes += value * value * value;
        if (i % 2) products += pair[0] * pair[1];
        for (int s = 0; s < 3; s++) inside[s] += fabs(value) < s + 1;
    }
    assert_true(fabs(sum / COUNT) < 0.015);
    assert_true(fabs(squares / COUNT - 1) < 0.025);
    assert_true(fabs(cubes / COUNT) < 0.06);
    assert_true(fabs(products / (COUNT / 2)) < 0.025);
    for (int s = 0; s < 3; s++) assert_true(fabs((double)inside[s] / COUNT - within[s]) < 0.007);
    assert_true(base_normal(3, 0) != base_normal(4, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers), cmocka_unit_test(test_avalanche),
        cmocka_unit_test(test_keys),          cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_normal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
