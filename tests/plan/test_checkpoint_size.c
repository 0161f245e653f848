/* What checkpoints take of a file system, against sums by hand. */
#include "plan/checkpoint_size.h"
#include "support/disk_plan.h"

static int64_t bytes_of(sifr_precision precision, bool masters, bool narrow_moments) {
    plan_settings settings = disk_plan_settings(1, 0, precision, (sifr_offload){0});
    settings.step.bf16_master_weights = !masters;
    settings.step.bf16_optimizer_states = narrow_moments;
    return plan_checkpoint_bytes(model, &settings);
}

/* A block of hidden 40: q and o are square, k and v half as wide, three products of the MLP, two
 * norms. */
enum {
    BLOCK = 2 * 40 * 40 + 2 * 20 * 40 + 3 * 56 * 40 + 2 * 40,
    ELEMENTS = 97 * 40 + 12 * BLOCK + 40
};

static void by_type(void **state) {
    (void)state;
    assert_int_equal(sifr_model_parameters(model), ELEMENTS);
    assert_int_equal(bytes_of(SIFR_FP32, true, false), 12 * ELEMENTS);
    assert_int_equal(bytes_of(SIFR_BF16, true, false), 12 * ELEMENTS);
    assert_int_equal(bytes_of(SIFR_FP16, true, false), 12 * ELEMENTS);
    assert_int_equal(bytes_of(SIFR_BF16, false, false), 10 * ELEMENTS);
    assert_int_equal(bytes_of(SIFR_BF16, true, true), 8 * ELEMENTS);
    assert_int_equal(bytes_of(SIFR_BF16, false, true), 6 * ELEMENTS);
}

/* Frozen weights have no moments and no master weights; those of a base are not in it at all. */
static void frozen_weights(void **state) {
    (void)state;
    sifr_error error = {0};
    sifr_model *frozen;
    model_config config = model_case_llama();
    plan_settings settings = disk_plan_settings(1, 0, SIFR_FP32, (sifr_offload){0});
    assert_int_equal(model_from_config(&config, &frozen, &error), SIFR_OK);
    int64_t all = plan_checkpoint_bytes(frozen, &settings);
    assert_int_equal(sifr_model_freeze(frozen, "*layers.1.*", &error), SIFR_OK);
    assert_int_equal(plan_checkpoint_bytes(frozen, &settings), all - 8 * BLOCK);
    settings.step.precision = SIFR_BF16;
    assert_int_equal(plan_checkpoint_bytes(frozen, &settings), all - 10 * BLOCK);
    for (size_t w = 0; w < frozen->weight_count; w++)
        frozen->weights[w].based = frozen->weights[w].frozen;
    assert_int_equal(plan_checkpoint_bytes(frozen, &settings), all - 12 * BLOCK);
    sifr_model_free(frozen);
}

/* `count` of them, a 64th of one, and a MiB; sums end at the largest number. */
static void capacity(void **state) {
    (void)state;
    assert_int_equal(plan_checkpoint_space(6400, 3), 3 * 6400 + 100 + (1 << 20));
    assert_int_equal(plan_checkpoint_space(0, 1000), 1 << 20);
    assert_true(plan_checkpoint_space(INT64_MAX / 2, 3) == INT64_MAX);
    assert_true(plan_checkpoint_space(INT64_MAX, 1) == INT64_MAX);
}

static void output(void **state) {
    (void)state;
    plan_settings settings = disk_plan_settings(1, 0, SIFR_FP32, (sifr_offload){0});
    plan_output out = {.known = true, .checkpoints = 2, .model_bytes = 1000, .swaps = 3};
    int64_t taken = plan_output_bytes(&out, model, &settings, 500);
    assert_int_equal(taken, plan_checkpoint_space(12 * ELEMENTS, 2) + 1000 + 3 * 500);
    out.room_bytes = taken;
    assert_true(plan_fits_output(&out, model, &settings, 500));
    assert_false(plan_fits_output(&out, model, &settings, 501));
    assert_false(plan_fits_output(&out, model, &settings, INT64_MAX));
    out.room_bytes--;
    assert_false(plan_fits_output(&out, model, &settings, 500));
    out.known = false;
    assert_true(plan_fits_output(&out, model, &settings, INT64_MAX));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_type), cmocka_unit_test(frozen_weights),
                                       cmocka_unit_test(capacity), cmocka_unit_test(output)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}
