/* What a run says of values that are given and do nothing: sifr's own keys, and flags; not what a
 * file of DeepSpeed's gives for other runs, nor what is the default anyway. */
#include "config/config_case.h"

static void idle(const char *text, const char *flag, const char *value, const char *wanted) {
    config_case *c = config_case_flags(text, 1, flag, value, NULL);
    config_case_accepted(c);
    c->lines[0] = '\0';
    config_explain_idle(&c->config, config_case_line, c);
    assert_string_equal(c->lines, wanted);
    config_case_free(c);
}

#define BATCH "{\"train_micro_batch_size_per_gpu\": 2"

static void of_features_that_are_off(void **state) {
    (void)state;
    idle(BATCH ", \"sifr\": {\"preference\": {\"beta\": 0.4}}}", "distill-weight", "0.7",
         "ds.json: sifr.preference.beta 0.4: no effect, since sifr.preference.loss_type is "
         "\"none\"\n"
         "--distill-weight 0.7: no effect, since sifr.distill.scores is not given\n");
    idle(BATCH ", \"sifr\": {\"preference\": {\"loss_type\": \"none\", \"reference\": \"r\"}}}",
         "distill-weight", "0.5", /* the default */
         "ds.json: sifr.preference.reference \"r\": no effect, since sifr.preference.loss_type is "
         "\"none\"\n");
}

static void of_features_that_are_on(void **state) {
    (void)state;
    idle(BATCH ", \"aio\": {\"queue_depth\": 32}, \"sifr\": {\"preference\": {\"loss_type\": "
               "\"ipo\"}}}",
         "preference-beta", "0.4", "");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_features_that_are_off),
                                       cmocka_unit_test(of_features_that_are_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
