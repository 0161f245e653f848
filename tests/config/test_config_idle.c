/* What a run says of values that are given and do nothing: sifr's own keys, and flags; not what a
 * file of DeepSpeed's gives for other runs, nor what is the default anyway. */
#include "config/config_case.h"

static void idle_on(int ranks, const char *text, const char *flag, const char *value,
                    const char *wanted) {
    config_case *c = config_case_flags(text, ranks, flag, value, NULL);
    config_case_accepted(c);
    c->lines[0] = '\0';
    config_explain_idle(&c->config, config_case_line, c);
    assert_string_equal(c->lines, wanted);
    config_case_free(c);
}

static void idle(const char *text, const char *flag, const char *value, const char *wanted) {
    idle_on(1, text, flag, value, wanted);
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

/* Keys that say how ranks work together, from a file, too. */
static void of_the_work_of_ranks(void **state) {
    (void)state;
    idle_on(2,
            BATCH ", \"pipeline\": {\"enabled\": true}, \"compression\": {\"enabled\": true},"
                  " \"tensor_parallel\": {\"enabled\": true, \"vocab_parallel_lm_head\": true,"
                  " \"vocab_parallel_ce_backend\": \"liger\"}, \"zero_optimization\": {\"stage\": "
                  "2, \"zero_hpz_partition_size\": 2, \"zero_quantized_weights\": true}}",
            NULL, NULL,
            "ds.json: zero_optimization.zero_hpz_partition_size 2: no effect, since "
            "zero_optimization.stage is 2\n"
            "ds.json: zero_optimization.zero_quantized_weights true: no effect, since "
            "zero_optimization.stage is 2\n"
            "ds.json: pipeline.enabled true: no effect, pipeline.stages is 1\n"
            "ds.json: tensor_parallel.enabled true: no effect, tensor_parallel.size is not above "
            "1\n"
            "ds.json: tensor_parallel.vocab_parallel_lm_head true: no effect, there is one tensor "
            "rank\n"
            "ds.json: tensor_parallel.vocab_parallel_ce_backend \"liger\": no effect: the loss of "
            "a divided head is sifr's own, which holds the logits of 1,024 tokens at a time, as "
            "little as Liger's.\n"
            "ds.json: compression.enabled true: no effect, compression.type says what is done; "
            "give \"powerSGD\"\n");
    idle_on(2, BATCH ", \"zero_optimization\": {\"stage\": 3, \"zero_hpz_partition_size\": 2}}",
            NULL, NULL,
            "ds.json: zero_optimization.zero_hpz_partition_size 2: no effect, these are all ranks "
            "that share the state\n");
    idle(BATCH ", \"zero_optimization\": {\"stage\": 2, \"zero_quantized_gradients\": true}}", NULL,
         NULL,
         "ds.json: zero_optimization.zero_quantized_gradients true: no effect, one rank has all "
         "gradients\n");
    /* Ranks of other contexts share the state, too. */
    idle_on(4,
            BATCH ", \"sequence_parallel_size\": 2, \"zero_optimization\": {\"stage\": 3, "
                  "\"zero_hpz_partition_size\": 2}}",
            NULL, NULL, "");
}

/* Whether --dry-run says of `path` that it has no effect. */
static bool is_said_idle(const config_case *c, const char *path) {
    const char *line = strstr(c->lines, path), *end = line ? strchr(line, '\n') : NULL;
    if (!end) fail_msg("no line for %s in:\n%s", path, c->lines);
    const char *said = strstr(line, "no effect");
    return said && said < end;
}

/* A key that switches its section on, so that the section's "enabled" is not needed. */
static void not_of_keys_that_switch_on(void **state) {
    static const char *const cases[][2] = {
        {"\"compression\": {\"type\": \"powerSGD\"}", "compression.type = "},
        {"\"tensor_parallel\": {\"autotp_size\": 2}", "tensor_parallel.autotp_size = "},
        {"\"tensor_parallel\": {\"size\": 2}", "tensor_parallel.size = "},
        {"\"pipeline\": {\"stages\": 2}", "pipeline.stages = "},
        {"\"pipeline\": {\"stages\": 2, \"schedule\": \"gpipe\"}", "pipeline.schedule = "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        snprintf(text, sizeof text, BATCH ", %s}", cases[i][0]);
        config_case *c = config_case_flags(text, 4, NULL);
        config_case_accepted(c);
        assert_false(is_said_idle(c, cases[i][1]));
        config_case_free(c);
    }
    config_case *c = config_case_flags(BATCH ", \"compression\": {\"type\": \"powerSGD\"}, "
                                             "\"tensor_parallel\": {\"size\": 2}}",
                                       2, NULL);
    config_case_accepted(c);
    assert_true(is_said_idle(c, "compression.type = "));
    config_case_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_features_that_are_off), cmocka_unit_test(of_features_that_are_on),
        cmocka_unit_test(of_the_work_of_ranks), cmocka_unit_test(not_of_keys_that_switch_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
