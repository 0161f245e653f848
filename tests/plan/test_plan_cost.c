/* not under sanitizers, plans unverified (it measures time)
 * What planning costs as rank 0 of 4,096: less than a second of one core for 1,000 units, and no
 * more than in proportion to the units. bench/bench_schedule.c has the figures. And what following
 * the contents of a plan adds to the other checks, for 70 billion parameters on 64 ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/registry.h"
#include "plan/pass/passes.h"
#include "plan/price/price.h"
#include "plan/verify/content_check.h"
#include "sifr/engine.h"
#include "support/model_case.h"

enum { RANKS = 4096, FEW = 500, MANY = 2000, LENGTH = 32 };

/* Of this thread alone: other work on the machine does not count. */
static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static sifr_model *model_of(int32_t units) {
    model_config c = model_case_llama();
    c.vocab_size = 512;
    c.hidden_size = 64;
    c.num_hidden_layers = units - 2;
    c.head_dim = 16;
    c.intermediate_size = 128;
    c.max_position_embeddings = LENGTH;
    sifr_model *model;
    sifr_error error;
    assert_int_equal(model_from_config(&c, &model, &error), SIFR_OK);
    assert_int_equal(model->unit_count, units);
    return model;
}

/* Best of some runs. */
static double plan_time(const sifr_model *model, device *dev, plan_settings settings, int runs) {
    static const plan_machine machine = {
        .fp32_operations = 1e11, .bf16_operations = 1e12, .memory_bytes = 1e10};
    double best = 1e9;
    for (int i = 0; i < runs; i++) {
        plan_schedule *s;
        plan_prediction p;
        sifr_error error;
        double start = cpu_seconds();
        assert_int_equal(plan_lower(model, dev, &settings, &s, &error), SIFR_OK);
        assert_int_equal(plan_predict(s, &machine, &p, NULL, &error), SIFR_OK);
        double seconds = cpu_seconds() - start;
        if (seconds < best) best = seconds;
        assert_true(p.step_seconds > 0);
        assert_true(s->total_bytes > 0);
        plan_free(s);
    }
    return best;
}

static void a_thousand_units(void **state) {
    (void)state;
    device *dev;
    sifr_error error;
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    sifr_model *few = model_of(FEW), *many = model_of(MANY);
    for (int variant = 0; variant < 8; variant++) {
        plan_settings settings = {.mode = PLAN_TRAIN,
                                  .step.precision = SIFR_BF16,
                                  .step.micro_batch_size = 1,
                                  .step.seq_length = LENGTH,
                                  .step.gradient_accumulation_steps = 1,
                                  .mesh = plan_mesh_flat(RANKS, 0),
                                  .step.zero.stage = variant % 4,
                                  .step.step_order =
                                      variant / 4 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH};
        double small = plan_time(few, dev, settings, 3), large = plan_time(many, dev, settings, 2);
        print_message("stage %d, order %d: %d units in %.3f s, %d in %.3f s\n",
                      settings.step.zero.stage, (int)settings.step.step_order, (int)FEW, small,
                      (int)MANY, large);
        if (large * 1000 >= MANY) fail_msg("planning takes %.2f s for %d units", large, (int)MANY);
        /* In proportion it is 4 times as much, and caches are smaller than the list; 16 times
         * where units look at one another. */
        if (large > 12 * small) fail_msg("planning grows faster than the model");
    }
    sifr_model_free(few);
    sifr_model_free(many);
    device_close(dev);
}

static sifr_model *model_70b(void) {
    model_config c = model_case_llama();
    c.vocab_size = 128256;
    c.hidden_size = 8192;
    c.num_hidden_layers = 80;
    c.num_attention_heads = 64;
    c.num_key_value_heads = 8;
    c.head_dim = 128;
    c.intermediate_size = 28672;
    c.max_position_embeddings = LENGTH;
    sifr_model *model;
    sifr_error error;
    assert_int_equal(model_from_config(&c, &model, &error), SIFR_OK);
    return model;
}

/* Seconds of a plan, verified or not; *contents: those of the last check alone. */
static double verified_time(const sifr_model *model, device *dev, plan_settings settings,
                            double *contents) {
    double best = 1e9;
    *contents = 1e9;
    for (int i = 0; i < 3; i++) {
        plan_schedule *s;
        sifr_error error = {0};
        double start = cpu_seconds();
        if (plan_lower(model, dev, &settings, &s, &error) != SIFR_OK) fail_msg("%s", error.message);
        double seconds = cpu_seconds() - start;
        if (seconds < best) best = seconds;
        start = cpu_seconds();
        assert_int_equal(plan_check_content(s, &error), SIFR_OK);
        seconds = cpu_seconds() - start;
        if (seconds < *contents) *contents = seconds;
        plan_free(s);
    }
    return best;
}

/* Verifying takes at most twice the time that it took before contents were followed. */
static void verifying(void **state) {
    (void)state;
    device *dev;
    sifr_error error;
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    sifr_model *model = model_70b();
    for (int variant = 0; variant < 4; variant++) {
        plan_settings settings = {.mode = PLAN_TRAIN, .mesh = plan_mesh_flat(64, 63)};
        settings.step = sifr_settings_defaults();
        settings.step.precision = SIFR_BF16;
        settings.step.micro_batch_size = 1;
        settings.step.seq_length = LENGTH;
        settings.step.gradient_accumulation_steps = variant == 1 ? 8 : 1;
        settings.step.step_order = SIFR_STEP_BATCH;
        settings.step.zero.stage = 3;
        if (variant == 2)
            settings.step.offload = (sifr_offload){.optimizer = {.device = SIFR_TIER_NVME,
                                                                 .ratio = 1,
                                                                 .pipeline_read = true,
                                                                 .pipeline_write = true},
                                                   .param.device = SIFR_TIER_NVME};
        if (variant == 3) { /* averages of rows and columns */
            settings.step.optimizer.type = SIFR_ADAFACTOR;
            assert_int_equal(sifr_model_group(model, &settings.step.optimizer, &error), SIFR_OK);
        }
        double contents, plain = verified_time(model, dev, settings, &contents);
        settings.verify = true;
        double all = verified_time(model, dev, settings, &contents);
        print_message("70B, rank 63 of 64, variant %d: %.3f s unverified, %.3f s verified, of "
                      "which %.3f s follow contents\n",
                      variant, plain, all, contents);
        if (plain >= 1) fail_msg("planning takes %.2f s", plain);
        if (2 * contents > all - plain + 0.02) fail_msg("following contents takes too long");
    }
    sifr_model_free(model);
    device_close(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_thousand_units),
                                       cmocka_unit_test(verifying)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
