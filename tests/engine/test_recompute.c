/* The same bits with everything kept, with units' inputs alone, with some of them, and with what a
 * limit of memory allows, on 1, 2 and 4 ranks; and the limit is kept.
 * in test_asan */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "support/thinned.h"
#include "support/zero_run.h"

enum { GLOBAL = 4, SHARES = 4 };

static void expect(const zero_outcome *want, zero_variant v, bool *partly) {
    zero_outcome have = zero_run(v);
    assert_true(zero_is_same(want, &have));
    assert_true(v.activation_bytes == 0 || have.activations <= v.activation_bytes);
    *partly |= v.activation_bytes > 0 && have.again > 0;
    free(have.weights);
}

/* Limits from the least that activations can take to what they take at most. */
static void limits_of(const zero_outcome *want, zero_variant v) {
    v.recompute = false;
    zero_outcome all = zero_run(v);
    v.recompute = true;
    zero_outcome none = zero_run(v);
    assert_true(zero_is_same(want, &all));
    assert_true(zero_is_same(want, &none));
    assert_true(none.activations < all.activations);
    assert_true(none.again > 0);
    bool partly = false;
    for (int i = 0; i < SHARES; i++) {
        v.activation_bytes =
            none.activations + (all.activations - none.activations) * i / (SHARES - 1);
        expect(want, v, &partly);
    }
    assert_true(partly);
    v.activation_bytes = 0;
    v.checkpoints = 1;
    expect(want, v, &partly);
    free(all.weights);
    free(none.weights);
}

static void same_bits(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "gpt2"};
    size_t turn = 0;
    for (int t = 0; t < 4; t++) {
        zero_variant v = {.ranks = 1,
                          .type = types[t % 2],
                          .precision = t / 2 ? SIFR_BF16 : SIFR_FP32,
                          .global = GLOBAL};
        zero_outcome want = zero_run(v);
        for (v.ranks = 1; v.ranks <= 4; v.ranks *= 2) {
            for (int order = 0; order < 2; order++) {
                if (thinned_run(turn++)) continue;
                v.unit_order = order;
                v.stage = (t + order) % 2 ? 3 : 1;
                limits_of(&want, v);
            }
        }
        free(want.weights);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
