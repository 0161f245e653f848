/* The ZeRO stages over ranks that are threads: the same bits at every stage, order and power-of-two
 * rank count, other rank counts within rounding, and bytes delivered as the plan's sum says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "plan/pass/passes.h"
#include "support/zero_run.h"

enum { GLOBAL = 8 };

static void same_bits(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "gpt2"};
    size_t turn = 0;
    for (int t = 0; t < 6; t++) {
        zero_variant v = {.ranks = 1,
                          .type = types[t % 2],
                          .precision = (sifr_precision)(t / 2),
                          .global = GLOBAL};
        zero_outcome want = zero_run(v);
        assert_true(isfinite(want.loss[ZERO_STEPS - 1]));
        assert_true(want.norm[0] > 0);
        for (v.ranks = 1; v.ranks <= 8; v.ranks *= 2) zero_expect_each_stage(&want, v, &turn);
        free(want.weights);
    }
}

/* Several documents in a sequence: other losses than one, and the same at every stage. */
static void packed(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "gpt2"};
    for (int t = 0; t < 2; t++) {
        zero_variant v = {.ranks = 1,
                          .type = types[t],
                          .precision = t ? SIFR_BF16 : SIFR_FP32,
                          .sequences = 2,
                          .global = GLOBAL};
        zero_outcome one = zero_run(v);
        v.packed = true;
        zero_outcome want = zero_run(v);
        assert_true(fabs(want.loss[0] - one.loss[0]) > 1e-4);
        for (v.ranks = 1; v.ranks <= 4; v.ranks *= 2) {
            for (v.stage = 0; v.stage < 4; v.stage++) {
                v.unit_order = v.stage % 2;
                v.recompute = v.stage / 2;
                zero_expect_same(&want, v);
            }
        }
        free(want.weights);
        free(one.weights);
    }
}

/* A loss scale that is far too high: the first steps overflow somewhere, every rank skips them and
 * lowers the scale, and the steps that follow are the same. */
static void overflows(void **state) {
    (void)state;
    zero_variant v = {.ranks = 1,
                      .type = "llama",
                      .precision = SIFR_FP16,
                      .global = GLOBAL,
                      .steps = ZERO_MOST_STEPS,
                      .first_scale = 0x1p24};
    zero_outcome want = zero_run(v);
    int skipped = 0;
    while (skipped < v.steps && want.norm[skipped] < 0) {
        /* the first overflow only uses up the hysteresis */
        assert_true(want.scale[skipped] == 0x1p25 / pow(2, skipped > 0 ? skipped : 1));
        skipped++;
    }
    assert_in_range(skipped, 2, ZERO_MOST_STEPS - 2);
    assert_int_equal(want.updates, v.steps - skipped);
    for (v.ranks = 1; v.ranks <= 4; v.ranks *= 2) {
        for (v.stage = 0; v.stage < 4; v.stage++) {
            v.unit_order = v.stage % 2;
            zero_expect_same(&want, v);
        }
    }
    free(want.weights);
}

/* 16 ranks: more than any unit but the blocks has blocks of 1,024 elements. */
static void more_ranks_than_blocks(void **state) {
    (void)state;
    zero_variant v = {.ranks = 1, .type = "llama", .global = 16};
    zero_outcome want = zero_run(v);
    v.ranks = 16;
    for (v.stage = 0; v.stage < 4; v.stage++) zero_expect_same(&want, v);
    free(want.weights);
}

/* 3, 5, 6 and 7 ranks: right, though not to the bit. */
static void other_counts(void **state) {
    (void)state;
    static const int32_t counts[] = {3, 5, 6, 7};
    for (int i = 0; i < 4; i++) {
        zero_variant v = {.ranks = 1, .type = "llama", .global = 2 * counts[i]};
        zero_outcome want = zero_run(v);
        for (v.stage = 0; v.stage < 4; v.stage++) {
            v.ranks = counts[i];
            zero_outcome have = zero_run(v);
            assert_int_equal(have.count, want.count);
            for (int s = 0; s < ZERO_STEPS; s++) {
                assert_true(fabs(have.loss[s] - want.loss[s]) < 1e-5 * want.loss[s]);
            }
            free(have.weights);
        }
        free(want.weights);
    }
}

/* Sums of gradients as they lie before the norm. */
static int64_t sums_of(const plan_schedule *s) {
    int64_t bytes = 0;
    int32_t norm = 0;
    while (s->instructions[norm].action != PLAN_NORM) norm++;
    for (size_t b = 0; b < s->buffer_count; b++) {
        const plan_buffer *buffer = &s->buffers[b];
        bool now = buffer->first >= 0 && buffer->first < norm && buffer->last > norm;
        if (now && buffer->class == PLAN_GRADIENTS) bytes += buffer->bytes;
    }
    return bytes;
}

/* Bytes of states fall with the ranks as the stage says: 18, 6 + 12/N, 2 + 16/N, 18/N a parameter,
 * and 16, 4 + 12/N, 2 + 14/N, 16/N with sums of gradients in 16 bits. */
static void memory(void **state) {
    (void)state;
    model_config config = zero_config("llama");
    sifr_model *model;
    device *dev;
    sifr_error error = {0};
    assert_int_equal(model_from_config(&config, &model, &error), SIFR_OK);
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    int64_t elements = 0;
    for (int number = 0; number < 16; number++) {
        int stage = number % 4;
        plan_settings settings = {.mode = PLAN_TRAIN,
                                  .step.precision = number / 4 % 2 ? SIFR_FP16 : SIFR_BF16,
                                  .step.micro_batch_size = 1,
                                  .step.seq_length = ZERO_LENGTH,
                                  .step.gradient_accumulation_steps = 1,
                                  .mesh = plan_mesh_flat(4, 1),
                                  .step.zero.stage = stage};
        plan_schedule *s;
        int64_t each = number / 8 ? 2 : 4;
        if (each == 2) settings.step.grad_accum_dtype = settings.step.precision;
        assert_int_equal(plan_lower(model, dev, &settings, &s, &error), SIFR_OK);
        int64_t held[PLAN_CLASSES] = {0};
        elements = 0;
        for (size_t u = 0; u < model->unit_count; u++) elements += s->segment_elements[u];
        for (size_t b = 0; b < s->buffer_count; b++) {
            if (s->buffers[b].first < 0) held[s->buffers[b].class] += s->buffers[b].bytes;
        }
        assert_int_equal(held[PLAN_PARAMETERS], elements * 2 / (stage == 3 ? 4 : 1));
        assert_int_equal(held[PLAN_MASTERS], elements * 4 / (stage >= 1 ? 4 : 1));
        assert_int_equal(held[PLAN_MOMENTS], elements * 8 / (stage >= 1 ? 4 : 1));
        assert_int_equal(sums_of(s), elements * each / (stage >= 2 ? 4 : 1));
        plan_free(s);
    }
    sifr_model_free(model);
    device_close(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),    cmocka_unit_test(packed),
        cmocka_unit_test(overflows),    cmocka_unit_test(more_ranks_than_blocks),
        cmocka_unit_test(other_counts), cmocka_unit_test(memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
