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

/* Likewise against transformers' get_scheduler: tests/golden/make_trainer_schedules.py. Each case
 * once with the run's length in the config, and once with a length that is known late. */
static void each_case_of_transformers(void **state) {
    (void)state;
    char path[4096];
    assert_non_null(getenv("SOURCE"));
    snprintf(path, sizeof path, "%s/tests/golden/trainer_schedules.json", getenv("SOURCE"));
    json_t *root = json_load_file(path, 0, NULL), *golden;
    assert_non_null(root);
    size_t i, compared = 0;
    json_array_foreach(json_object_get(root, "cases"), i, golden) {
        json_t *total = json_object_get(golden, "max_steps"),
               *rates = json_object_get(golden, "rates");
        for (int late = 0; late < 2; late++) {
            json_t *config = json_pack("{s:{s:O, s:O, s:O, s:O}}", "sifr", "learning_rate",
                                       json_object_get(golden, "lr"), "lr_scheduler_type",
                                       json_object_get(golden, "type"), "lr_scheduler_kwargs",
                                       json_object_get(golden, "kwargs"), "warmup_steps",
                                       json_object_get(golden, "warmup_steps"));
            if (!late) json_object_set(json_object_get(config, "sifr"), "max_steps", total);
            char *text = json_dumps(config, 0);
            config_case *c = config_case_text(text);
            config_case_accepted(c);
            assert_int_equal(
                config_set_total_steps(&c->config, json_integer_value(total), &c->error), SIFR_OK);
            for (size_t j = 0; j < json_array_size(rates); j++) {
                double wanted = json_number_value(json_array_get(rates, j));
                double got = config_lr_at(&c->config.schedule, (int64_t)j - 1);
                if (!(fabs(got - wanted) <= 4e-16 * fabs(wanted)))
                    fail_msg("%s at step %zu: %.17g, not %.17g", text, j, got, wanted);
                compared++;
            }
            config_case_free(c);
            free(text);
            json_decref(config);
        }
    }
    assert_true(compared > 2000);
    json_decref(root);
}

static void refused(const char *sifr, const char *message) {
    char text[512];
    snprintf(text, sizeof text, "{\"sifr\": {%s}}", sifr);
    config_refused(text, message);
}

static void what_is_no_schedule(void **state) {
    (void)state;
    refused("\"lr_scheduler_type\": \"greedy\"",
            "ds.json: sifr.lr_scheduler_type is \"greedy\", which is not supported yet (supported: "
            "linear, cosine, cosine_with_restarts, polynomial, constant, constant_with_warmup, "
            "inverse_sqrt, cosine_with_min_lr, cosine_warmup_with_min_lr, warmup_stable_decay); "
            "choose one that is supported");
    config_case *c =
        config_case_text("{\"sifr\": {\"lr_scheduler_type\": \"reduce_lr_on_plateau\"}}");
    assert_int_equal(c->status, SIFR_USAGE);
    assert_non_null(
        strstr(c->error.message, "is \"reduce_lr_on_plateau\", which is not supported"));
    config_case_free(c);
    refused("\"warmup_steps\": 9",
            "ds.json: sifr.warmup_steps is given without a schedule; give sifr.lr_scheduler_type, "
            "such as \"linear\"");
    refused("\"lr_scheduler_type\": \"cosine_with_min_lr\"",
            "cosine_with_min_lr needs one of scheduler.params.min_lr, a rate, and "
            "scheduler.params.min_lr_rate, a share; give one");
    refused(
        "\"lr_scheduler_type\": \"cosine_with_min_lr\", \"lr_scheduler_kwargs\": "
        "{\"min_lr\": 1}",
        "ds.json: scheduler.params.min_lr is 1, more than the learning rate 5e-05; give a lower "
        "one");
    refused("\"lr_scheduler_type\": \"polynomial\", \"learning_rate\": 1e-8",
            "scheduler.params.lr_end is 1e-07, which must be below the learning rate 1e-08; give a "
            "lower one");
    refused("\"lr_scheduler_type\": \"warmup_stable_decay\"",
            "scheduler.params.num_decay_steps is missing: warmup_stable_decay needs it; give a "
            "number of steps");
    refused(
        "\"lr_scheduler_type\": \"linear\", \"lr_scheduler_kwargs\": {\"power\": 2}",
        "ds.json: scheduler.params.power is no parameter of linear; leave it out, it is one of: "
        "polynomial");
    config_refused("{\"scheduler\": {\"type\": \"WarmupLR\"}, \"sifr\": {\"lr_scheduler_type\": "
                   "\"linear\"}}",
                   "ds.json: sifr.lr_scheduler_type is \"linear\", but scheduler.type is "
                   "\"WarmupLR\"; leave one of them out");
    config_refused("{\"scheduler\": {\"type\": \"WarmupLR\", \"params\": {\"warmup_type\": "
                   "\"cosine\"}}}",
                   "ds.json: scheduler.params.warmup_type is \"cosine\", which WarmupLR does not "
                   "have; its kinds are log and linear");
    config_refused("{\"scheduler\": {\"type\": \"WarmupLR\", \"params\": {\"warmup_num_steps\": "
                   "5}}, \"sifr\": {\"warmup_ratio\": 0.1}}",
                   "ds.json: sifr.warmup_ratio would have no effect: set "
                   "scheduler.params.warmup_num_steps to \"auto\", or leave ds.json: "
                   "sifr.warmup_ratio out");
}

/* The Trainer's warm-up fills in DeepSpeed's "auto", as transformers does. */
static void warmup_of_auto(void **state) {
    (void)state;
    static const char text[] =
        "{\"scheduler\": {\"type\": \"WarmupDecayLR\", \"params\": {\"warmup_num_steps\": "
        "\"auto\", \"total_num_steps\": \"auto\"}}, \"sifr\": {\"warmup_ratio\": 0.1}}";
    config_case *c = config_case_text(text);
    config_case_accepted(c);
    assert_int_equal(config_set_total_steps(&c->config, 91, &c->error), SIFR_OK);
    assert_int_equal(c->config.schedule.warmup_num_steps, 10);
    assert_int_equal(c->config.schedule.total_num_steps, 91);
    config_case_free(c);
    c = config_case_flags(text, 1, "warmup-steps", "7", NULL);
    config_case_accepted(c);
    assert_int_equal(c->config.schedule.warmup_num_steps, 7);
    config_case_free(c);
    c = config_case_flags(text, 1, "warmup-steps", "0", "max-steps", "30", NULL);
    config_case_accepted(c);
    assert_int_equal(c->config.schedule.warmup_num_steps, 3);
    config_case_free(c);
    config_said("{\"sifr\": {\"lr_scheduler_type\": \"constant\", \"warmup_ratio\": 0.1}}",
                "sifr.warmup_ratio", "no effect, constant has no warm-up");
    /* A run says it, whichever way it is given; also of other keys, but not of DeepSpeed's own in a
     * file, which are of other runs. */
    static const char constant[] =
        "{\"fp16\": {\"enabled\": true, \"loss_scale\": 8, \"hysteresis\": 3},"
        " \"sifr\": {\"lr_scheduler_type\": \"constant\", \"num_train_epochs\": 2}}";
    c = config_case_flags(constant, 1, "warmup-steps", "5", "max-steps", "9", NULL);
    config_case_accepted(c);
    c->lines[0] = '\0';
    config_explain_idle(&c->config, config_case_line, c);
    assert_string_equal(c->lines, "ds.json: sifr.num_train_epochs 2: no effect, max_steps counts\n"
                                  "--warmup-steps 5: no effect, constant has no warm-up; "
                                  "constant_with_warmup has one\n");
    config_case_free(c);
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
    for (int kind = CONFIG_LR_CONSTANT; kind < CONFIG_LR_KINDS; kind++) {
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
                                .range_step_size = 1,
                                .trainer_warmup = kind % 2 ? INT64_MAX : 0,
                                .num_cycles = 1e6,
                                .power = 1e300,
                                .num_decay_steps = INT64_MAX,
                                .num_stable_steps = -0x1p63};
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
        cmocka_unit_test(each_case_of_transformers),
        cmocka_unit_test(what_is_no_schedule),
        cmocka_unit_test(warmup_of_auto),
        cmocka_unit_test(no_state),
        cmocka_unit_test(extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
