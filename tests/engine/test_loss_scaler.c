/* Against DeepSpeed's own loss_scaler.py: tests/golden/make_loss_scales.py. */
#include "engine/state/loss_scaler.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/errors.h"

static double number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

/* Steps compared. */
static size_t compare_case(size_t index, const json_t *golden) {
    sifr_fp16 options = {.min_loss_scale = number(golden, "least"),
                         .loss_scale_window = (int64_t)number(golden, "window"),
                         .hysteresis = (int64_t)number(golden, "hysteresis"),
                         .consecutive_hysteresis =
                             json_is_true(json_object_get(golden, "consecutive"))};
    const char *steps = json_string_value(json_object_get(golden, "steps"));
    const json_t *trace = json_object_get(golden, "trace");
    int64_t ends = (int64_t)number(golden, "ends"), step = 0;
    size_t at = 0;
    engine_loss_scaler scaler = engine_loss_scaler_begin(&options);
    scaler.scale = number(golden, "initial"); /* DeepSpeed's may be no power of 2 */
    double scale = scaler.scale, hysteresis = (double)scaler.hysteresis;
    for (; steps[step]; step++) {
        bool goes_on = engine_loss_scaler_update(&scaler, &options, steps[step] == 'x');
        if (goes_on != (step != ends))
            fail_msg("case %zu: step %lld ends or goes on", index, (long long)step);
        if (!goes_on) break;
        const json_t *change = json_array_get(trace, at);
        if (json_integer_value(json_array_get(change, 0)) == step && change) {
            scale = json_number_value(json_array_get(change, 1));
            hysteresis = json_number_value(json_array_get(change, 2));
            at++;
        }
        if (scaler.scale != scale || (double)scaler.hysteresis != hysteresis)
            fail_msg("case %zu, step %lld: scale %g and hysteresis %lld, not %g and %g", index,
                     (long long)step, scaler.scale, (long long)scaler.hysteresis, scale,
                     hysteresis);
    }
    assert_int_equal(at, json_array_size(trace));
    return (size_t)step;
}

static void each_case_of_deepspeed(void **state) {
    char path[4096];
    size_t index, steps = 0;
    json_t *golden;
    (void)state;
    assert_non_null(getenv("SOURCE"));
    snprintf(path, sizeof path, "%s/tests/golden/loss_scales.json", getenv("SOURCE"));
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    json_array_foreach(json_object_get(root, "cases"), index, golden) {
        steps += compare_case(index, golden);
    }
    assert_true(index >= 30);
    assert_true(steps > 3000);
    json_decref(root);
}

/* A fixed scale never changes and never ends a run. */
static void fixed_scale(void **state) {
    (void)state;
    sifr_fp16 options = {
        .loss_scale = 128, .loss_scale_window = 1, .hysteresis = 1, .min_loss_scale = 128};
    engine_loss_scaler scaler = engine_loss_scaler_begin(&options);
    for (int i = 0; i < 100; i++) {
        assert_true(engine_loss_scaler_update(&scaler, &options, i % 3 != 0));
        assert_true(scaler.scale == 128);
    }
}

/* The state is all there is: going on from a copy is the same. */
static void goes_on_from_a_copy(void **state) {
    (void)state;
    sifr_fp16 options = {
        .initial_scale_power = 6, .min_loss_scale = 1, .loss_scale_window = 3, .hysteresis = 2};
    engine_loss_scaler whole = engine_loss_scaler_begin(&options);
    for (int i = 0; i < 50; i++) {
        engine_loss_scaler copy = {.scale = whole.scale,
                                   .iteration = whole.iteration,
                                   .last_overflow = whole.last_overflow,
                                   .hysteresis = whole.hysteresis};
        bool overflow = i % 7 == 2 || i % 11 == 5;
        assert_true(engine_loss_scaler_update(&whole, &options, overflow));
        assert_true(engine_loss_scaler_update(&copy, &options, overflow));
        assert_true(copy.scale == whole.scale);
        assert_true(copy.hysteresis == whole.hysteresis);
        assert_true(copy.iteration == whole.iteration);
        assert_true(copy.last_overflow == whole.last_overflow);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_case_of_deepspeed),
        cmocka_unit_test(fixed_scale),
        cmocka_unit_test(goes_on_from_a_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
