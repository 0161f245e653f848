/* Training in fp16: beside fp32, its loss scale, and what ends a run. */
#include "engine/small_model.h"

#include <math.h>
#include <stdbool.h>

#include "engine/engine_private.h"

enum { SEQUENCES = 4, LENGTH = 32, TOKENS = SEQUENCES * LENGTH, STEPS = 40 };

static sifr_settings defaults(sifr_precision precision) {
    sifr_settings options = sifr_settings_defaults();
    options.precision = precision;
    options.threads = 2;
    options.micro_batch_size = SEQUENCES;
    options.seq_length = LENGTH;
    return options;
}

/* One of three batches, so that there is something to learn. */
static sifr_step_result step_at(sifr_engine *engine, int number, double rate) {
    int32_t tokens[TOKENS], labels[TOKENS];
    sifr_step_result result;
    sifr_error error = {0};
    small_batch(number % 3, TOKENS, tokens, labels);
    if (sifr_engine_step(engine, &(sifr_batch){.tokens = tokens, .labels = labels}, rate, &result,
                         &error) != SIFR_OK) {
        fail_msg("%s", error.message);
    }
    return result;
}

static sifr_step_result step(sifr_engine *engine, int number) {
    return step_at(engine, number, 3e-3);
}

/* The same way down as in fp32: the first steps differ by what 11 bits are, and what becomes of it
 * later stays small. */
static void converges(void **state) {
    (void)state;
    for (int kind = 0; kind < SMALL_KINDS; kind++) {
        sifr_model *model = small_model((small_kind)kind);
        sifr_settings wide = defaults(SIFR_FP32), narrow = defaults(SIFR_FP16);
        sifr_engine *a = small_engine(model, &wide), *b = small_engine(model, &narrow);
        sifr_step_result first = {0}, x = {0}, y;
        for (int s = 0; s < STEPS; s++) {
            x = step(a, s), y = step(b, s);
            if (s == 0) first = x;
            assert_true(x.updated);
            assert_true(y.updated);
            assert_true(x.loss_scale == 1);
            assert_true(y.loss_scale == 65536);
            double norm = fabs(x.gradient_norm - y.gradient_norm) / x.gradient_norm;
            double far = s == 0 ? 1e-3 : s < 10 ? 0.01 : 0.2;
            if (fabs(x.loss - y.loss) > fmin(far, 0.01) * x.loss || norm > far)
                fail_msg("%s, step %d: loss %.6f in fp32, %.6f in fp16; norm %.6g, %.6g",
                         small_names[kind], s, x.loss, y.loss, x.gradient_norm, y.gradient_norm);
        }
        assert_true(x.loss < 0.6 * first.loss);
        sifr_engine_free(a);
        sifr_engine_free(b);
        sifr_model_free(model);
    }
}

/* What share of the weights gets no gradient at all, since fp16 holds nothing below 2^-25. */
static double zero_share(const sifr_model *model, double fixed) {
    sifr_settings options = defaults(SIFR_FP16);
    options.fp16.loss_scale = fixed;
    sifr_engine *engine = small_engine(model, &options);
    sifr_step_result result = step(engine, 0);
    assert_true(result.updated);
    assert_true(result.loss_scale == fixed);
    int64_t zero = 0, count = 0, all = 0;
    for (size_t w = 0; w < model->weight_count; w++) {
        const float *moment = engine_state(engine, w, ENGINE_STATE1);
        if (strstr(model->weights[w].name, "embed")) continue; /* of tokens that do not occur */
        count = model->weights[w].rows * model->weights[w].columns;
        for (int64_t i = 0; i < count; i++) zero += moment[i] == 0;
        all += count;
    }
    sifr_engine_free(engine);
    return (double)zero / (double)all;
}

static void scale_keeps_gradients(void **state) {
    (void)state;
    sifr_model *model = small_model(SMALL_LLAMA);
    double without = zero_share(model, 0x1p-18), with = zero_share(model, 0x1p14);
    if (!(without > 0.5 && with < 1e-3))
        fail_msg("zeros: %g without a scale, %g with", without, with);
    sifr_model_free(model);
}

/* Of all first moments: Adam would not mind a scale in them, the next step with another would. */
static double moments(const sifr_model *model, const sifr_engine *engine) {
    double sum = 0;
    for (size_t w = 0; w < model->weight_count; w++) {
        const float *moment = engine_state(engine, w, ENGINE_STATE1);
        for (int64_t i = 0; i < model->weights[w].rows * model->weights[w].columns; i++)
            sum += (double)moment[i] * (double)moment[i];
    }
    return sqrt(sum);
}

/* Any scale is divided out again. Powers of two change no digit: between two large ones, what is
 * left is the last digits of the smallest gradients. */
static void fixed_scale(void **state) {
    (void)state;
    sifr_model *model = small_model(SMALL_LLAMA);
    double losses[4], norms[4], sizes[4];
    for (int i = 0; i < 4; i++) {
        static const double scales[] = {0x1p17, 0x1p18, 0x1p12, 10000};
        sifr_settings options = defaults(SIFR_FP16);
        options.fp16.loss_scale = scales[i];
        sifr_engine *engine = small_engine(model, &options);
        for (int s = 0; s < 4; s++) {
            sifr_step_result result = step(engine, s);
            assert_true(result.updated);
            assert_true(result.loss_scale == scales[i]);
            losses[i] = result.loss, norms[i] = result.gradient_norm;
        }
        assert_true(sifr_engine_loss_scale(engine) == scales[i]);
        sizes[i] = moments(model, engine);
        sifr_engine_free(engine);
    }
    assert_true(fabs(losses[1] - losses[0]) < 1e-10 * losses[0]);
    assert_true(fabs(norms[1] - norms[0]) < 1e-10 * norms[0]);
    for (int i = 1; i < 4; i++) {
        assert_true(fabs(losses[i] - losses[0]) < 1e-3 * losses[0]);
        assert_true(fabs(norms[i] - norms[0]) < 5e-3 * norms[0]);
        assert_true(fabs(sizes[i] - sizes[0]) < 5e-3 * sizes[0]);
    }
    sifr_model_free(model);
}

/* Skipped steps change the scale and nothing else; a window of clean ones doubles it. Steps are as
 * small as to leave the gradients as they are, so that the largest scale they bear is one. */
static void searches_a_scale(void **state) {
    (void)state;
    sifr_model *model = small_model(SMALL_TIED);
    sifr_settings options = defaults(SIFR_FP16);
    options.fp16.initial_scale_power = 30;
    options.fp16.loss_scale_window = 4;
    sifr_engine *engine = small_engine(model, &options);
    size_t count = (size_t)(model->weights[0].rows * model->weights[0].columns);
    float *before = malloc(count * sizeof *before);
    assert_non_null(before);
    memcpy(before, engine_state(engine, 0, ENGINE_MASTER), count * sizeof *before);
    double scale = 0x1p30;
    int s = 0;
    for (; s < 20; s++) {
        sifr_step_result result = step_at(engine, 0, 1e-12);
        assert_true(result.loss_scale == scale);
        assert_true(isfinite(result.loss));
        if (result.updated) break;
        if (s > 0) scale /= 2; /* the first one uses the hysteresis up */
        assert_true(sifr_engine_loss_scale(engine) == scale);
        assert_int_equal(sifr_engine_updates(engine), 0);
        assert_memory_equal(before, engine_state(engine, 0, ENGINE_MASTER), count * sizeof *before);
        assert_true(engine_state(engine, 0, ENGINE_STATE2)[0] == 0);
    }
    assert_in_range(s, 2, 19);
    assert_int_equal(sifr_engine_updates(engine), 1);
    assert_true(sifr_engine_loss_scale(engine) == scale);
    for (int clean = 1; clean < 5; clean++) { /* DeepSpeed grows at the one behind the window */
        assert_true(sifr_engine_loss_scale(engine) == scale);
        assert_true(step_at(engine, 0, 1e-12).updated);
    }
    for (int i = 0; i < 2; i++) { /* twice, as growth has refilled the hysteresis */
        assert_true(sifr_engine_loss_scale(engine) == 2 * scale);
        assert_false(step_at(engine, 0, 1e-12).updated);
    }
    assert_true(sifr_engine_loss_scale(engine) == scale);
    assert_int_equal(sifr_engine_updates(engine), 5);
    assert_int_equal(sifr_engine_steps(engine), s + 7);
    free(before);
    sifr_engine_free(engine);
    sifr_model_free(model);
}

static void least_scale_ends_the_run(void **state) {
    (void)state;
    int32_t tokens[TOKENS], labels[TOKENS];
    sifr_step_result result;
    sifr_error error = {0};
    sifr_model *model = small_model(SMALL_LLAMA);
    sifr_settings options = defaults(SIFR_FP16);
    options.fp16.initial_scale_power = 62;
    options.fp16.min_loss_scale = 0x1p60;
    options.fp16.hysteresis = 1;
    sifr_engine *engine = small_engine(model, &options);
    assert_false(step(engine, 0).updated);
    assert_false(step(engine, 1).updated);
    assert_true(sifr_engine_loss_scale(engine) == 0x1p60);
    small_batch(2, TOKENS, tokens, labels);
    assert_int_equal(sifr_engine_step(engine, &(sifr_batch){.tokens = tokens, .labels = labels},
                                      1e-3, &result, &error),
                     SIFR_FAILED);
    assert_non_null(strstr(error.message, "step 3: a gradient overflows fp16 at loss scale 1.15"));
    assert_non_null(strstr(error.message, "min_loss_scale"));
    sifr_engine_free(engine);
    sifr_model_free(model);
}

/* No label says nothing about the scale. */
static void no_labels(void **state) {
    (void)state;
    int32_t tokens[TOKENS], labels[TOKENS];
    sifr_step_result result;
    sifr_error error = {0};
    sifr_model *model = small_model(SMALL_LLAMA);
    sifr_settings options = defaults(SIFR_FP16);
    sifr_engine *engine = small_engine(model, &options);
    small_batch(0, TOKENS, tokens, labels);
    for (int i = 0; i < TOKENS; i++) labels[i] = -100;
    engine_loss_scaler before = engine->scaler;
    assert_int_equal(sifr_engine_step(engine, &(sifr_batch){.tokens = tokens, .labels = labels},
                                      1e-3, &result, &error),
                     SIFR_OK);
    assert_false(result.updated);
    assert_true(engine->scaler.hysteresis == before.hysteresis);
    assert_true(engine->scaler.iteration == before.iteration);
    sifr_engine_free(engine);
    sifr_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(converges),   cmocka_unit_test(scale_keeps_gradients),
        cmocka_unit_test(fixed_scale), cmocka_unit_test(searches_a_scale),
        cmocka_unit_test(no_labels),   cmocka_unit_test(least_scale_ends_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
