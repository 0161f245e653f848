/* sifr.no_decay, sifr.layer_decay and sifr.groups: what they come to, and what is refused. */
#include "config/config_case.h"

#include <math.h>

static config_case *with(const char *sifr, const char *more) {
    char text[1024];
    snprintf(text, sizeof text, "{\"sifr\": {%s}%s}", sifr, more);
    return config_case_text(text);
}

static void refuse(const char *sifr, const char *more, const char *message) {
    config_case *c = with(sifr, more);
    config_case_refused(c, message);
}

static void accept(const config_case *c) {
    if (c->status != SIFR_OK) fail_msg("%s", c->error.message);
}

static void defaults(void **state) {
    (void)state;
    config_case *c = config_case_text("{}");
    const sifr_optimizer *o = &c->config.step.optimizer;
    accept(c);
    assert_int_equal(o->no_decay, SIFR_DECAY_ALL);
    assert_true(o->layer_decay >= 1);
    assert_true(o->layer_decay <= 1);
    assert_int_equal(o->group_count, 0);
    assert_null(o->groups);
    config_case_free(c);
    c = config_case_flags("{}", 1, "no-decay", "transformers", "layer-decay", "0.75", NULL);
    accept(c);
    assert_int_equal(c->config.step.optimizer.no_decay, SIFR_NO_DECAY_TRANSFORMERS);
    assert_true(fabs(c->config.step.optimizer.layer_decay - 0.75) < 1e-15);
    config_case_free(c);
}

#define SOME                                                                                       \
    "\"groups\": [{\"match\": \"*head*\", \"lr\": 1e-2, \"weight_decay\": 0}, "                    \
    "{\"match\": [\"a.*\", \"b.*\"], \"lr_scale\": 0.5}, {\"match\": \"c\", \"weight_decay\": 1}]"

static void check_some(const config_case *c) {
    static const char *const names[] = {"*head*", "a.*", "b.*", "c"};
    static const double scales[] = {10, 0.5, 0.5, 1}, decays[] = {0, -1, -1, 1};
    const sifr_optimizer *o = &c->config.step.optimizer;
    accept(c);
    assert_int_equal(o->group_count, 4);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(o->groups[i].match, names[i]);
        assert_true(fabs(o->groups[i].lr_scale - scales[i]) < 1e-9);
        assert_true(fabs(o->groups[i].weight_decay - decays[i]) < 1e-9);
    }
}

static void groups(void **state) {
    (void)state;
    config_case *c = with(SOME, ", \"optimizer\": {\"type\": \"AdamW\", \"params\": {}}");
    check_some(c); /* of the rate 0.001 */
    sifr_error error;
    assert_int_equal(config_resolve(&c->config, 1, &error), SIFR_OK);
    check_some(c);
    char *text;
    assert_int_equal(config_text(&c->config, &text, &error), SIFR_OK);
    config_case *again = config_case_text(text);
    check_some(again); /* the effective config repeats them */
    free(text);
    config_case_free(again);
    config_case_free(c);
    c = with("\"groups\": [{\"match\": \"*\", \"lr\": 1e-3}], \"learning_rate\": 1e-4", "");
    accept(c);
    assert_true(fabs(c->config.step.optimizer.groups[0].lr_scale - 10) < 1e-9);
    config_case_free(c);
}

#define SCHEDULE(type_, params_)                                                                   \
    ", \"optimizer\": {\"params\": {\"lr\": 0.01}}, \"scheduler\": {\"type\": \"" type_            \
    "\", \"params\": {" params_ "}}"

/* A rate is a share of the optimizer's, so the schedule must be one of shares, too. */
static void rates(void **state) {
    (void)state;
    static const char *const right[] = {
        SCHEDULE("WarmupLR", "\"warmup_max_lr\": 0.01"),
        SCHEDULE("WarmupLR", ""),
        SCHEDULE("WarmupCosineLR", "\"total_num_steps\": 10"),
        SCHEDULE("linear", ""),
    };
    static const char *const wrong[] = {
        SCHEDULE("WarmupLR", "\"warmup_max_lr\": 0.02"),
        SCHEDULE("WarmupLR", "\"warmup_min_lr\": 0.001"),
        SCHEDULE("WarmupDecayLR", "\"total_num_steps\": 10"),
        SCHEDULE("LRRangeTest", ""),
        SCHEDULE("OneCycle", "\"cycle_min_lr\": 0.001, \"cycle_max_lr\": 0.01"),
    };
    static const char one[] = "\"max_steps\": 20, \"groups\": [{\"match\": \"*\", \"lr\": 0.02}]";
    static const char scaled[] =
        "\"max_steps\": 20, \"groups\": [{\"match\": \"*\", \"lr_scale\": 2}]";
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        config_case *c = with(one, right[i]);
        accept(c);
        assert_true(fabs(c->config.step.optimizer.groups[0].lr_scale - 2) < 1e-12);
        config_case_free(c);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        refuse(one, wrong[i],
               "ds.json: sifr.groups[0].lr is 0.02, and the scheduler sets rates that are no "
               "shares of optimizer.params.lr; give lr_scale, a share of the rate of each step");
        config_case *c = with(scaled, wrong[i]);
        accept(c);
        config_case_free(c);
    }
    refuse(one, ", \"optimizer\": {\"params\": {\"lr\": 0}}",
           "ds.json: sifr.groups[0].lr is 0.02, which is no share of optimizer.params.lr 0; give "
           "that a value above 0");
}

static void wrong_values(void **state) {
    (void)state;
    refuse("\"groups\": []", "",
           "ds.json: sifr.groups must be a list of {\"match\", \"lr\" or \"lr_scale\", "
           "\"weight_decay\"}");
    refuse("\"groups\": [3]", "",
           "ds.json: sifr.groups[0] must be an object {\"match\", \"lr\" or \"lr_scale\", "
           "\"weight_decay\"}");
    refuse("\"groups\": [{\"match\": \"a\", \"decay\": 1}]", "",
           "ds.json: sifr.groups[0].decay is unknown; a group has match, lr or lr_scale, and "
           "weight_decay");
    refuse("\"groups\": [{\"match\": \"a\", \"weight_deca\": 1}]", "",
           "ds.json: sifr.groups[0].weight_deca is unknown; did you mean weight_decay; a group has "
           "match, lr or lr_scale, and weight_decay");
    refuse("\"groups\": [{\"lr\": 1}]", "",
           "ds.json: sifr.groups[0].match must be a shell pattern for names of weights, or a list "
           "of them");
    refuse("\"groups\": [{\"match\": [\"a\", 3]}]", "",
           "ds.json: sifr.groups[0].match must be a shell pattern for names of weights, or a list "
           "of them");
    refuse("\"groups\": [{\"match\": \"a\", \"lr\": -1}]", "",
           "ds.json: sifr.groups[0].lr must be a number from 0 to 1000000");
    refuse("\"groups\": [{\"match\": \"a\", \"weight_decay\": \"0.1\"}]", "",
           "ds.json: sifr.groups[0].weight_decay must be a number from 0 to 1000000");
    refuse("\"groups\": [{\"match\": \"a\", \"lr\": 1, \"lr_scale\": 1}]", "",
           "ds.json: sifr.groups[0] gives lr and lr_scale; give one of them");
    refuse("\"layer_decay\": 0", "",
           "ds.json: sifr.layer_decay is 0, with which only the head would be trained; give a "
           "number above 0, at most 1");
    refuse("\"layer_decay\": 1.5", "",
           "ds.json: sifr.layer_decay must be a number from 0 to 1 or \"auto\", not 1.5; its "
           "default is 1.0");
    refuse(
        "\"no_decay\": \"norms\"", "",
        "ds.json: sifr.no_decay must be one of none, transformers or \"auto\", not \"norms\"; its "
        "default is \"none\"");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(defaults), cmocka_unit_test(groups),
                                       cmocka_unit_test(rates), cmocka_unit_test(wrong_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
