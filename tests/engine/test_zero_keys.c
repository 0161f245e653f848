/* DeepSpeed's keys of zero_optimization: none of them changes a bit; bytes, calls and memory change
 * as each of them says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "support/thinned.h"
#include "support/zero_run.h"

enum { GLOBAL = 8, EVERYTHING = 1 << 30 };

static sifr_zero defaults(void) {
    return sifr_settings_defaults().zero;
}

static zero_outcome run_with(zero_variant v, sifr_zero keys) {
    v.keys = &keys;
    return zero_run(v);
}

/* The units of the small Llama: embedding, two blocks, norm and tied head. */
enum { EMBEDDING, BLOCK, HEAD = 3, UNITS };

/* What one pass over these units delivers to a rank, in elements. */
static int64_t pass_over(const sifr_model *model, int32_t ranks, int embedding, int blocks,
                         int head) {
    const int times[UNITS] = {embedding, blocks, blocks, head};
    int64_t sum = 0;
    assert_int_equal(model->unit_count, UNITS);
    for (int u = 0; u < UNITS; u++) {
        int64_t cut = (int64_t)ranks * DEVICE_BLOCK;
        sum += times[u] * base_ceil_to(model->units[u].elements, cut) / ranks * (ranks - 1);
    }
    return sum;
}

/* The design's table: every use of a unit's weights is reduced by itself, so a tied head's table
 * travels twice, and at stage 3 it is gathered for both uses. */
static void wire_is_the_table(void **state) {
    (void)state;
    model_config config = zero_config("llama");
    sifr_model *model;
    sifr_error error = {0};
    assert_int_equal(model_from_config(&config, &model, &error), SIFR_OK);
    for (int variant = 0; variant < 2 * 2 * 2 * 4; variant++) {
        int n = variant, ranks = n % 2 ? 3 : 2, bf16 = n / 2 % 2, unit = n / 4 % 2, stage = n / 8;
        int k = 2, again = stage >= 2 && !unit ? k : 1, element = bf16 ? 2 : 4;
        zero_variant v = {.ranks = ranks,
                          .stage = stage,
                          .unit_order = unit,
                          .precision = bf16 ? SIFR_BF16 : SIFR_FP32,
                          .type = "llama",
                          .global = k * ranks};
        zero_outcome have = zero_run(v);
        free(have.weights);
        assert_int_equal(have.reduced, again * 4 * pass_over(model, ranks, 2, 1, 1));
        assert_int_equal(have.reductions, again * 5);
        if (stage == 3) {
            assert_int_equal(have.gathered, again * element * pass_over(model, ranks, 2, 2, 1));
            assert_int_equal(have.gathers, again * 7);
        } else {
            if (stage == 0) element = 4;
            assert_int_equal(have.gathered, element * pass_over(model, ranks, 1, 1, 1));
            assert_int_equal(have.gathers, 4);
        }
    }
    sifr_model_free(model);
}

/* Each key moved away from its default at stage 3, and what that does. */
static void stage_3(void **state) {
    (void)state;
    zero_variant v = {.ranks = 4, .stage = 3, .type = "llama", .global = GLOBAL};
    model_config config = zero_config("llama");
    sifr_model *model;
    sifr_error error = {0};
    assert_int_equal(model_from_config(&config, &model, &error), SIFR_OK);
    zero_outcome plain = zero_run(v), have;
    int64_t block = base_ceil_to(model->units[BLOCK].elements, 4 * DEVICE_BLOCK) * 4;
    int64_t small = model->units[EMBEDDING].elements; /* more than the head, less than a block */

    sifr_zero keys = defaults();
    keys.overlap_comm = false;
    have = run_with(v, keys);
    assert_true(zero_is_same(&plain, &have));
    assert_true(have.gathered == plain.gathered);
    assert_true(have.gathers == plain.gathers);
    assert_true(have.total_bytes < plain.total_bytes);
    free(have.weights);

    keys = defaults();
    keys.prefetch_bucket_size = 0;
    zero_outcome none = run_with(v, keys);
    assert_true(zero_is_same(&plain, &none));
    assert_true(none.gathers == plain.gathers);
    assert_true(none.peak[PLAN_GATHERED] <= plain.peak[PLAN_GATHERED]);

    keys.prefetch_bucket_size = EVERYTHING;
    zero_outcome all = run_with(v, keys);
    assert_true(zero_is_same(&plain, &all));
    assert_true(all.gathers == plain.gathers);
    assert_true(all.peak[PLAN_GATHERED] >= plain.peak[PLAN_GATHERED] + block);

    keys.max_live_parameters = 1;
    have = run_with(v, keys);
    assert_true(zero_is_same(&plain, &have));
    assert_int_equal(have.total_bytes, none.total_bytes);
    free(have.weights);

    keys = defaults();
    keys.max_reuse_distance = EVERYTHING; /* once a unit and step, the tied table too */
    have = run_with(v, keys);
    assert_true(zero_is_same(&plain, &have));
    assert_int_equal(have.gathers, UNITS);
    assert_int_equal(have.gathered, 4 * pass_over(model, 4, 1, 1, 1));
    assert_true(have.peak[PLAN_GATHERED] > plain.peak[PLAN_GATHERED]);
    free(have.weights);

    /* Between the first block's backward and its next forward pass the embedding is gathered;
     * between the last block's forward and backward pass the head and the table. */
    keys.max_reuse_distance = small + model->units[HEAD].elements + 1;
    have = run_with(v, keys);
    assert_true(zero_is_same(&plain, &have));
    assert_int_equal(have.gathers, plain.gathers - 1 - 2);
    free(have.weights);
    keys.max_reuse_distance--;
    have = run_with(v, keys);
    assert_int_equal(have.gathers, plain.gathers - 1);
    free(have.weights);
    keys.max_reuse_distance = small;
    have = run_with(v, keys);
    assert_int_equal(have.gathers, plain.gathers);
    free(have.weights);

    keys = defaults();
    keys.param_persistence_threshold = small; /* embedding and head */
    have = run_with(v, keys);
    assert_true(zero_is_same(&plain, &have));
    assert_int_equal(have.gathers, 2 * 2 * 2 + 2);
    assert_int_equal(have.gathered,
                     4 * (2 * pass_over(model, 4, 0, 2, 0) + pass_over(model, 4, 1, 0, 1)));
    free(have.weights);
    keys.model_persistence_threshold = small; /* the head has no room any more */
    have = run_with(v, keys);
    assert_true(zero_is_same(&plain, &have));
    assert_int_equal(have.gathers, 2 * (2 * 2 + 1) + 1);
    free(have.weights);
    keys.param_persistence_threshold = keys.model_persistence_threshold = EVERYTHING;
    have = run_with(v, keys);
    assert_true(zero_is_same(&plain, &have));
    assert_int_equal(have.gathers, UNITS);
    assert_int_equal(have.peak[PLAN_GATHERED], 0);
    free(have.weights);

    keys = defaults();
    keys.reduce_bucket_size = 1; /* no gradient waits for its reduction beside another */
    have = run_with(v, keys);
    assert_true(zero_is_same(&plain, &have));
    assert_true(have.reductions == plain.reductions);
    assert_true(have.total_bytes < plain.total_bytes);
    uint64_t one_element = have.total_bytes;
    free(have.weights);

    keys.reduce_bucket_size = 0;
    have = run_with(v, keys);
    assert_true(zero_is_same(&plain, &have));
    assert_int_equal(have.total_bytes, one_element);
    free(have.weights);

    free(plain.weights);
    free(none.weights);
    free(all.weights);
    sifr_model_free(model);
}

/* Both steps of each of these, over stages, orders and types: every pair of values is met. */
static void pairs(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 20000, EVERYTHING};
    for (int t = 0; t < 2; t++) {
        zero_variant v = {.ranks = 1,
                          .type = t ? "gpt2" : "llama",
                          .precision = t ? SIFR_BF16 : SIFR_FP32,
                          .global = GLOBAL};
        zero_outcome want = zero_run(v);
        for (int n = 0; n < 36; n++) { /* a Latin square of the three sizes, under all stages */
            sifr_zero keys = defaults();
            int a = n % 3, b = n / 3 % 3, stage = n / 9;
            keys.overlap_comm = (a + 2 * b + stage) % 2;
            keys.reduce_bucket_size = sizes[a] - (a == 0);
            keys.allgather_bucket_size = sizes[b];
            keys.prefetch_bucket_size = sizes[(a + b) % 3] - (a == b);
            keys.max_live_parameters = sizes[(a + 2 * b) % 3];
            keys.max_reuse_distance = sizes[b] - 1;
            keys.param_persistence_threshold = sizes[(a + b + stage) % 3] - 1;
            keys.model_persistence_threshold = sizes[(2 * a + b + stage) % 3] - 1;
            v.stage = stage;
            v.unit_order = (a + n / 3) % 2;
            v.recompute = (b + n) % 2;
            v.ranks = n % 2 ? 4 : 2;
            v.keys = &keys;
            if (thinned_run((size_t)n + (size_t)n / 3)) continue;
            zero_expect_same(&want, v);
        }
        free(want.weights);
    }
}

/* Micro batches added left to right: at stages 2 and 3 in "batch" order those are sums over ranks,
 * and the result is that of one rank within rounding. */
static void sequential(void **state) {
    (void)state;
    zero_variant v = {.ranks = 1, .type = "llama", .global = 12, .sequential = true};
    zero_outcome one = zero_run(v);
    for (v.ranks = 2; v.ranks <= 4; v.ranks++) {
        zero_outcome first = {0};
        for (int n = 0; n < 8; n++) {
            v.stage = n % 4;
            v.unit_order = n / 4;
            zero_outcome have = zero_run(v);
            for (int s = 0; s < ZERO_STEPS; s++) {
                double apart = have.loss[s] / one.loss[s] - 1;
                assert_true(apart > -1e-5);
                assert_true(apart < 1e-5);
            }
            bool across = v.stage >= 2 && !v.unit_order;
            assert_int_equal(have.reductions, across ? 5 * 12 / v.ranks : 5);
            if (n == 0) {
                first = have;
                continue;
            }
            if (!across) assert_true(zero_is_same(&first, &have));
            free(have.weights);
        }
        free(first.weights);
    }
    free(one.weights);
}

/* Gradients that travel in 16 bits: half of the bytes in as many calls, and for a fixed number of
 * ranks the same bits at every stage and in both orders where a rank has one micro batch. */
static void narrow(void **state) {
    (void)state;
    static const sifr_precision travels[] = {SIFR_BF16, SIFR_FP16};
    for (int t = 0; t < 2; t++) {
        zero_variant v = {.ranks = 4, .type = "llama", .global = 4}, first = v;
        zero_outcome full = zero_run(v);
        first.travel = travels[t];
        zero_outcome want = zero_run(first);
        assert_false(zero_is_same(&full, &want));
        for (v = first, v.stage = 0; v.stage < 4; v.stage++) {
            for (int order = 0; order < 2; order++) {
                v.unit_order = order;
                zero_outcome have = zero_run(v);
                assert_true(zero_is_same(&want, &have));
                assert_int_equal(have.reductions, full.reductions);
                assert_int_equal(2 * have.reduced, full.reduced);
                free(have.weights);
            }
        }
        for (int s = 0; s < ZERO_STEPS; s++) {
            double apart = want.loss[s] / full.loss[s] - 1;
            assert_true(apart > -0.01);
            assert_true(apart < 0.01);
        }
        v = first;
        v.ranks = 1; /* nothing travels */
        zero_outcome alone = zero_run(v);
        v.travel = SIFR_FP32;
        zero_expect_same(&alone, v);
        free(alone.weights);
        free(full.weights);
        free(want.weights);
    }
}

/* Sums of gradients in the training type: the same bits at every stage, order and rank count, as
 * each sum of the tree is rounded wherever it is made; and half of the bytes on the wire. */
static void narrow_sums(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "gpt2"};
    size_t turn = 0;
    for (int t = 0; t < 4; t++) {
        zero_variant v = {.ranks = 1,
                          .type = types[t % 2],
                          .precision = t / 2 ? SIFR_FP16 : SIFR_BF16,
                          .global = 8};
        zero_outcome full = zero_run(v);
        v.gradients = v.precision;
        zero_outcome want = zero_run(v);
        assert_false(zero_is_same(&full, &want));
        for (int s = 0; s < ZERO_STEPS; s++) {
            double apart = want.loss[s] / full.loss[s] - 1;
            assert_true(apart > -0.01);
            assert_true(apart < 0.01);
        }
        for (v.ranks = 1; v.ranks <= 8; v.ranks *= 2) zero_expect_each_stage(&want, v, &turn);
        v.ranks = 4, v.stage = 3, v.unit_order = true;
        zero_outcome narrow = zero_run(v);
        v.gradients = SIFR_FP32;
        zero_outcome wide = zero_run(v);
        assert_int_equal(2 * narrow.reduced, wide.reduced);
        assert_int_equal(narrow.gathered, wide.gathered);
        free(narrow.weights);
        free(wide.weights);
        free(full.weights);
        free(want.weights);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wire_is_the_table),
        cmocka_unit_test(stage_3),
        cmocka_unit_test(pairs),
        cmocka_unit_test(sequential),
        cmocka_unit_test(narrow),
        cmocka_unit_test(narrow_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
