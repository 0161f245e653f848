/* Against DeepSpeed's own lr_schedules.py: tests/golden/make_lr_schedules.py. Each case goes
 * through the config parser, so that names and defaults are tested with the formulas. */
#include "config/config_case.h"

#include <math.h>

static void each_case_of_deepspeed(void **state) {
    (void)state;
    const char *source = getenv("SOURCE");
    assert_non_null(source);
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/golden/lr_schedules.json", source);
    json_error_t where;
    json_t *root = json_load_file(path, 0, &where);
    assert_non_null(root);
    json_t *steps = json_object_get(root, "steps"), *cases = json_object_get(root, "cases"),
           *golden;
    size_t i, compared = 0;
    json_array_foreach(cases, i, golden) {
        json_t *config =
            json_pack("{s:{s:s,s:{s:O}},s:{s:O,s:O}}", "optimizer", "type", "AdamW", "params", "lr",
                      json_object_get(golden, "lr"), "scheduler", "type",
                      json_object_get(golden, "type"), "params", json_object_get(golden, "params"));
        char *text = json_dumps(config, 0);
        assert_non_null(text);
        config_case *c = config_case_text(text);
        config_case_accepted(c);
        const config_lr_schedule *schedule = &c->config.schedule;
        json_t *rates = json_object_get(golden, "rates"), *betas = json_object_get(golden, "betas");
        for (size_t j = 0; j < json_array_size(steps); j++) {
            int64_t t = (int64_t)json_integer_value(json_array_get(steps, j));
            double wanted = json_number_value(json_array_get(rates, j));
            double got = config_lr_at(schedule, t);
            if (!(fabs(got - wanted) <= 4e-16 * fabs(wanted))) {
                fail_msg("%s at t = %lld: %.17g, not %.17g", text, (long long)t, got, wanted);
            }
            json_t *pair = json_is_array(betas) ? json_array_get(betas, j) : NULL;
            double beta1 = pair ? json_number_value(json_array_get(pair, 0)) : 0.9;
            double beta2 = pair ? json_number_value(json_array_get(pair, 1)) : 0.999;
            got = config_lr_beta1_at(schedule, t, 0.9);
            if (!(fabs(got - beta1) <= 4e-16)) {
                fail_msg("%s: beta1 at t = %lld: %.17g, not %.17g", text, (long long)t, got, beta1);
            }
            assert_true(config_lr_beta2_at(schedule, 0.999) == beta2);
            compared++;
        }
        config_case_free(c);
        free(text);
        json_decref(config);
    }
    assert_true(compared > 1900);
    json_decref(root);
}

/* A run that resumes at t goes on as the uninterrupted one: the functions have no memory. */
static void no_state(void **state) {
    (void)state;
    config_lr_schedule s = {.kind = CONFIG_LR_WARMUP_COSINE,
                            .base_lr = 1e-3,
                            .cos_min_ratio = 0.1,
                            .warmup_num_steps = 5,
                            .total_num_steps = 50};
    double late = config_lr_at(&s, 30);
    for (int64_t t = -1; t < 60; t++) {
        double lr = config_lr_at(&s, t);
        assert_true(lr >= 0);
        assert_true(lr <= 1e-3);
        assert_true(isfinite(lr));
    }
    assert_true(config_lr_at(&s, 30) == late);
    assert_true(config_lr_at(&s, 50) == config_lr_at(&s, INT64_MAX - 1));
}

/* Extreme but valid sizes stay finite. */
static void extremes(void **state) {
    (void)state;
    for (int kind = CONFIG_LR_CONSTANT; kind <= CONFIG_LR_RANGE_TEST; kind++) {
        config_lr_schedule s = {.kind = (config_lr_kind)kind,
                                .base_lr = 1,
                                .warmup_max_lr = 1,
                                .cycle_max_lr = 1,
                                .range_min_lr = 1,
                                .range_step_rate = 1,
                                .warmup_num_steps = INT64_MAX,
                                .total_num_steps = 1,
                                .first_step_size = INT64_MAX,
                                .second_step_size = INT64_MAX,
                                .range_step_size = 1};
        static const int64_t steps[] = {-1, 0, 1, INT64_MAX - 1, INT64_MAX};
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            assert_true(isfinite(config_lr_at(&s, steps[i])));
            assert_true(isfinite(config_lr_beta1_at(&s, steps[i], 0.9)));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_case_of_deepspeed),
        cmocka_unit_test(no_state),
        cmocka_unit_test(extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
