/* Reading: comments, unknown keys, types, ranges, old names, hostile files.
 * in test_asan */
#include "config/config_case.h"

static void comments_and_commas(void **state) {
    (void)state;
    config_case *c = config_case_text("// first\n{ # second\n"
                                      "  \"gradient_clipping\": 0.5, /* third\n fourth */\n"
                                      "  \"optimizer\": {\"params\": {\"betas\": [0.8, 0.9,],},},\n"
                                      "  \"sifr\": {\"model\": \"a\\\"//b#c/*d*/,}\"},\n}\n# end");
    config_case_accepted(c);
    assert_float_equal(c->config.step.gradient_clipping, 0.5, 0);
    assert_float_equal(c->config.step.optimizer.beta1, 0.8, 0);
    assert_string_equal(c->config.model, "a\"//b#c/*d*/,}");
    config_case_free(c);
    config_case *mark = config_case_text("\xef\xbb\xbf{}");
    config_case_accepted(mark);
    config_case_free(mark);
}

static void broken_json(void **state) {
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "ds.json: not valid JSON at line 1"},
        {"{\n\n  \"gradient_clipping\" 1}", "line 3"},
        {"{\"a\": [,]}", "not valid JSON"},
        {"{,}", "not valid JSON"},
        {"{\"gradient_clipping\": 1,,}", "not valid JSON"},
        {"{\"gradient_clipping\": NaN}", "not valid JSON"},
        {"{\"gradient_clipping\": Infinity}", "not valid JSON"},
        {"{\"gradient_clipping\": 1e400}", "not valid JSON"},
        {"{\"gradient_clipping\": 0x10}", "not valid JSON"},
        {"{\"gradient_clipping\": 01}", "not valid JSON"},
        {"{\"seed\": 99999999999999999999}", "not valid JSON"},
        {"{gradient_clipping: 1", "not valid HJSON at line 1, column 22: a closing } is missing"},
        {"{\"gradient_clipping\": 1} {}", "not valid JSON"},
        {"{\"gradient_clipping\": 1, \"gradient_clipping\": 2}", "duplicate object key"},
        {"{\"gradient_clipping\": 1, \"gradient_\\u0063lipping\": 2}", "duplicate object key"},
        {"{\"\xff\": 1}", "not valid JSON"},
        {"[]", "a config is an object {…}, not a list"},
        {"{} /* open\n", "the comment that begins at line 1 has no end"},
        {"\xff\xfe{", "is UTF-16, not UTF-8; save it as UTF-8"},
        {"{\"a", "not valid JSON"},
        {"{\"a\\", "not valid JSON"},
        {"/", "not valid JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        config_case *c = config_case_text(cases[i].text);
        assert_int_equal(c->status, SIFR_USAGE);
        if (!strstr(c->error.message, cases[i].part)) {
            fail_msg("\"%s\" not in: %s", cases[i].part, c->error.message);
        }
        assert_null(strchr(c->error.message, '\n'));
        config_case_free(c);
    }
}

static void too_deep(void **state) {
    (void)state;
    static const char *const opening[] = {"[", "{\"data_efficiency\":"};
    for (size_t i = 0; i < 2; i++) {
        size_t length = strlen(opening[i]), depth = 100000;
        char *text = malloc(length * depth + 1);
        assert_non_null(text);
        for (size_t j = 0; j < depth; j++) memcpy(text + j * length, opening[i], length);
        text[length * depth] = 0;
        config_refused(text, "ds.json: JSON nested deeper than 64 levels is not supported");
        free(text);
    }
}

static void utf16_without_mark(void **state) {
    (void)state;
    sifr_config config;
    sifr_error error;
    assert_int_equal(config_create(&config, &error), SIFR_OK);
    assert_int_equal(config_parse(&config, "{\0}\0", 4, "ds.json", &error), SIFR_USAGE);
    assert_string_equal(error.message, "ds.json: is UTF-16, not UTF-8; save it as UTF-8");
    config_free(&config);
}

static void unknown_keys(void **state) {
    (void)state;
    config_refused("{\"gradient_cliping\": 1}",
                   "ds.json: unknown key gradient_cliping; did you mean "
                   "gradient_clipping?");
    config_refused("{\"zero_optimization\": {\"stge\": 0}}",
                   "ds.json: unknown key zero_optimization.stge; did you mean "
                   "zero_optimization.stage?");
    config_refused("{\"zero_optimization\": {\"aio\": {\"queue_depth\": 8}}}",
                   "ds.json: unknown key zero_optimization.aio; \"aio\" belongs at the top level");
    config_refused("{\"optimizer\": {\"lr\": 1e-4}}",
                   "ds.json: unknown key optimizer.lr; \"lr\" belongs in \"optimizer.params\"");
    config_refused("{\"offload_optimizer\": {\"device\": \"cpu\"}}",
                   "ds.json: unknown key offload_optimizer; \"offload_optimizer\" belongs in "
                   "\"zero_optimization\"");
    config_refused("{\"device\": \"cpu\"}",
                   "ds.json: unknown key device; \"device\" belongs in one of 3 sections, such as "
                   "zero_optimization.offload_param.device");
    config_refused("{\"xyzzy\": 1}",
                   "ds.json: unknown key xyzzy; docs/config.md lists every key that is known");
    config_refused("{\"zero_optimization.stage\": 0}",
                   "ds.json: unknown key \"zero_optimization.stage\" with a dot in its name; write "
                   "it as nested objects");
    config_refused("{\"sifr\": {\"max_step\": 5}}",
                   "ds.json: unknown key sifr.max_step; did you mean sifr.max_steps?");
    /* The beginning of a section's name rather than that of a key. */
    config_refused("{\"zero\": {\"stage\": 2}}",
                   "ds.json: unknown key zero; did you mean zero_optimization?");
    config_refused("{\"sifr\": {\"activation\": {}}}",
                   "ds.json: unknown key sifr.activation; did you mean sifr.activation_memory?");
    /* A flag's name where its key has another, and the beginning of a name. */
    config_refused("{\"sifr\": {\"ema_decay\": 0.9}}",
                   "ds.json: unknown key sifr.ema_decay; did you mean sifr.ema.decay?");
    config_refused("{\"sifr\": {\"preference_beta\": 1}}",
                   "ds.json: unknown key sifr.preference_beta; did you mean sifr.preference.beta?");
    config_refused("{\"sifr\": {\"preference\": {\"loss\": \"ipo\"}}}",
                   "ds.json: unknown key sifr.preference.loss; did you mean "
                   "sifr.preference.loss_type?");
    config_refused("{\"sifr\": {\"data\": [{\"w\": 0.8}]}}",
                   "ds.json: sifr.data must be a list of strings or \"auto\", not [{\"w\":0.8}]");
    /* A short word is near to a key of some section: only sections around it, and in it, count. */
    config_refused("{\"wandb\": {\"host\": \"a\"}}",
                   "ds.json: unknown key wandb.host; docs/config.md lists every key that is known");
    config_refused("{\"sifr\": {\"train_batch_siz\": 8}}",
                   "ds.json: unknown key sifr.train_batch_siz; did you mean train_batch_size?");
    /* A login that was written as a key. */
    config_refused("{\"comet\": {\"aB3dE5gH7jK9mN1pQ2rS\": true}}",
                   "ds.json: unknown key in \"comet\", whose name is not shown, as it may be a "
                   "login; docs/config.md lists every key that is known");
    config_refused("{\"https://me:pass@host\": 1}",
                   "ds.json: unknown key, whose name is not shown, as it may be a login; "
                   "docs/config.md lists every key that is known");
    config_refused("{\"a\\nb\": 1}",
                   "ds.json: unknown key \"a\\nb\"; docs/config.md lists every key "
                   "that is known");
    config_refused("{\"\": 1}",
                   "ds.json: unknown key ; docs/config.md lists every key that is known");
}

static void types_and_ranges(void **state) {
    (void)state;
    config_refused("{\"gradient_clipping\": \"big\"}",
                   "ds.json: gradient_clipping must be a number >= 0 or \"auto\", not \"big\"; its "
                   "default is 1.0");
    config_refused("{\"gradient_clipping\": -1}",
                   "ds.json: gradient_clipping must be a number >= 0 or \"auto\", not -1; its "
                   "default is 1.0");
    config_refused("{\"gradient_clipping\": true}",
                   "ds.json: gradient_clipping must be a number >= 0 or \"auto\", not true; its "
                   "default is 1.0");
    config_refused("{\"train_batch_size\": 1.5}",
                   "ds.json: train_batch_size must be a whole number > 0 or \"auto\", not 1.5");
    config_refused("{\"train_batch_size\": true}",
                   "ds.json: train_batch_size must be a whole number > 0 or \"auto\", not true");
    config_refused("{\"train_batch_size\": 0}",
                   "ds.json: train_batch_size must be a whole number > 0 or \"auto\", not 0");
    config_refused("{\"train_batch_size\": 1e19}",
                   "ds.json: train_batch_size must be a whole number > 0 or \"auto\", not 1e+19");
    config_refused("{\"fp16\": {\"loss_scale\": true}}",
                   "ds.json: fp16.loss_scale must be a number >= 0 or \"auto\", not true; its "
                   "default is 0");
    config_refused("{\"bf16\": {\"enabled\": 1}}",
                   "ds.json: bf16.enabled must be true or false or \"auto\", not 1; its default is "
                   "false");
    config_refused("{\"bf16\": true}", "ds.json: bf16 must be an object {…}, not true");
    config_refused("{\"scheduler\": {\"params\": {\"warmup_type\": \"cubic\"}}}",
                   "ds.json: scheduler.params.warmup_type must be one of log, linear, cosine, "
                   "1-sqrt or \"auto\", not \"cubic\"; its default is \"log\"");
    config_refused("{\"optimizer\": {\"params\": {\"betas\": [0.9, 1.0]}}}",
                   "ds.json: optimizer.params.betas must be a list of numbers from 0 to 0.99999997 "
                   "or \"auto\", not [0.9, 1]; its default is [0.9, 0.999]");
    config_refused(
        "{\"optimizer\": {\"params\": {\"betas\": [0.9]}}}",
        "optimizer.params.betas must be a list of two numbers, such as [0.9, 0.999], not "
        "of 1");
    config_refused(
        "{\"scheduler\": {\"type\": \"WarmupCosineLR\", \"params\": {\"cos_min_ratio\": 2}}}",
        "ds.json: scheduler.params.cos_min_ratio must be a number from 0 to 1 or "
        "\"auto\", not 2; its default is 0.0001");
    config_refused("{\"zero_optimization\": {\"stage\": 4}}",
                   "ds.json: zero_optimization.stage must be one of 0, 1, 2, 3 or \"auto\", not 4; "
                   "its default is 0");
    config_refused("{\"sifr\": {\"data\": [\"a\", 1]}}",
                   "ds.json: sifr.data must be a list of strings or \"auto\", not [\"a\", 1]");
}

static void spellings_that_pass(void **state) {
    (void)state;
    config_case *c = config_case_text(
        "{\"zero_optimization\": {\"reduce_bucket_size\": 5e8, \"sub_group_size\": 1e12},"
        " \"optimizer\": {\"type\": \"adamw\"}, \"steps_per_print\": 10.0, \"tensorboard\": null,"
        " \"gradient_clipping\": \"auto\", \"sifr\": {\"data\": \"one.txt\", \"seed\": 1e3}}");
    config_case_accepted(c);
    assert_int_equal(c->config.steps_per_print, 10);
    assert_int_equal(c->config.step.seed, 1000);
    assert_int_equal(c->config.data_count, 1);
    assert_string_equal(c->config.data[0], "one.txt");
    assert_float_equal(c->config.step.gradient_clipping, 1.0, 0);
    config_case_free(c);
}

static void old_names(void **state) {
    (void)state;
    config_case *c = config_case_text("{\"bfloat16\": {\"enabled\": true}}");
    config_case_accepted(c);
    assert_int_equal(c->config.step.precision, SIFR_BF16);
    config_case_free(c);
    config_said("{\"bfloat16\": {\"enabled\": true}}", "bfloat16", "another name of bf16");
    config_said("{\"aio\": {\"thread_count\": 4}}", "aio.intra_op_parallelism", "4");
    config_said("{\"zero_optimization\": {\"cpu_offload\": false}}",
                "zero_optimization.cpu_offload",
                "another name of zero_optimization.offload_optimizer");
    config_said("{\"zero_optimization\": {\"cpu_offload\": true}}",
                "zero_optimization.offload_optimizer.device", "= \"cpu\" (no effect on CPU ranks");
    config_said("{\"zero_optimization\": true}", "zero_optimization.stage", "= 1 (no effect");
    config_said("{\"zero_optimization\": false, \"allgather_size\": 100}",
                "zero_optimization.allgather_bucket_size", "100");
    config_refused("{\"bf16\": {}, \"bfloat16\": {}}",
                   "ds.json: bfloat16 is another name of bf16, and both are given; leave bfloat16 "
                   "out");
    config_refused("{\"zero_optimization\": {\"cpu_offload\": 1}}",
                   "ds.json: zero_optimization.cpu_offload must be true or false, not 1");
    config_refused("{\"zero_optimization\": 7, \"allgather_size\": 100}",
                   "ds.json: allgather_size cannot be read: the section of "
                   "zero_optimization.allgather_bucket_size is no object");
}

static void flags_win(void **state) {
    (void)state;
    config_case *c = config_case_flags(
        "{\"sifr\": {\"max_steps\": 5, \"data\": [\"x\", \"y\"], \"seed\": 3}}", 1, "max-steps",
        "2k", "data", "a", "data", "b", "data", "c", "num_train_epochs", "0.5", "resume", NULL,
        "bf16", NULL, "step-order", "UNIT", "optimizer.params.eps", "1e-6", "model", "auto", NULL);
    config_case_accepted(c);
    assert_int_equal(c->config.max_steps, 2000);
    assert_int_equal(c->config.data_count, 3);
    assert_string_equal(c->config.data[2], "c");
    assert_int_equal(c->config.step.seed, 3);
    assert_true(c->config.resume);
    assert_int_equal(c->config.step.precision, SIFR_BF16);
    assert_int_equal(c->config.step.step_order, SIFR_STEP_UNIT);
    assert_float_equal(c->config.step.optimizer.eps, 1e-6, 0);
    assert_string_equal(c->config.model, "auto");
    config_case_free(c);
    config_case_refused(config_case_flags(NULL, 1, "max-step", "5", NULL),
                        "unknown flag \"max-step\"; did you mean --max-steps?");
    config_case_refused(config_case_flags(NULL, 1, "max-steps", "many", NULL),
                        "--max-steps: 'many' is not a number like 4096, 4k or 1e9");
    config_case_refused(config_case_flags(NULL, 1, "max-steps", NULL, NULL),
                        "--max-steps needs a value");
    config_case_refused(config_case_flags(NULL, 1, "seq-length", "0", NULL),
                        "--seq-length must be a whole number > 0 or \"auto\", not 0");
    config_case_refused(
        config_case_flags(NULL, 1, "step-order", "both", NULL),
        "--step-order must be one of batch, unit, auto, not \"both\"; its default is "
        "\"auto\"");
    config_case_refused(config_case_flags(NULL, 1, "output", "\xff", NULL),
                        "--output: the value is not valid UTF-8; rename it");
    config_case_refused(config_case_flags(NULL, 1, "bf16", "maybe", NULL),
                        "--bf16 must be true or false or \"auto\", not \"maybe\"; its default is "
                        "false");
    config_case_refused(config_case_flags(NULL, 1, "optimizer.params", "1", NULL),
                        "optimizer.params cannot be set by a flag; put it into the config");
}

static void files(void **state) {
    (void)state;
    sifr_config config;
    sifr_error error;
    assert_int_equal(config_create(&config, &error), SIFR_OK);
    assert_int_equal(config_load(&config, "/nonexistent/ds.json", &error), SIFR_FAILED);
    assert_non_null(strstr(error.message, "/nonexistent/ds.json"));
    assert_int_equal(config_parse(&config, "{}", 2, "a.json", &error), SIFR_OK);
    assert_int_equal(config_parse(&config, "{}", 2, "b.json", &error), SIFR_USAGE);
    assert_string_equal(error.message, "b.json: a run has one config, and a.json is read already");
    config_free(&config);
    config_free(&config);
}

static void keys_with_an_underscore_are_ignored(void **state) {
    (void)state;
    config_case *c = config_case_text(
        "{\"_comment\": {\"stage\": 9}, \"zero_optimization\": {\"stage\": 0, \"_why\": 1},"
        " \"_a b\": null, \"gradient_clipping\": 2}");
    config_case_accepted(c);
    assert_true(c->config.step.gradient_clipping == 2);
    assert_string_equal(config_ignored(&c->config, 0), "_comment");
    assert_string_equal(config_ignored(&c->config, 1), "zero_optimization._why");
    assert_string_equal(config_ignored(&c->config, 2), "\"_a b\"");
    assert_null(config_ignored(&c->config, 3));
    assert_non_null(strstr(c->lines, "\nzero_optimization._why: ignored, since its name begins "
                                     "with _\n"));
    config_case_free(c);
    c = config_case_text("{}");
    assert_null(config_ignored(&c->config, 0));
    config_case_free(c);
}

static void all_faults_at_once(void **state) {
    (void)state;
    config_refused(
        "{\"gradient_cliping\": 1, \"zero_optimization\": {\"stage\": 7},"
        " \"amp\": {\"enabled\": true}}",
        "3 faults: (1) ds.json: unknown key gradient_cliping; did you mean "
        "gradient_clipping? (2) ds.json: zero_optimization.stage must be one of 0, 1, "
        "2, 3 or \"auto\", not 7; its default is 0 (3) ds.json: amp.enabled is true, "
        "which is refused: NVIDIA Apex; DeepSpeed took it out; use bf16. So set it to false "
        "or leave it out");
    char many[2048] = "{\"a0\": 1";
    for (int i = 1; i < 60; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), ", \"xyzzy_%d\": 1", i);
    strcat(many, "}");
    config_case *c = config_case_text(many);
    assert_int_equal(c->status, SIFR_USAGE);
    assert_ptr_equal(strstr(c->error.message, "60 faults, the first "), c->error.message);
    config_case_free(c);
}

static void keys_that_deepspeed_lets_pass(void **state) {
    (void)state;
    config_said("{\"compile\": {\"disable\": true}}", "compile.disable", "accepted without effect");
    config_said("{\"comms_config\": {\"x\": 1}}", "comms_config", "accepted without effect");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comments_and_commas),
        cmocka_unit_test(broken_json),
        cmocka_unit_test(too_deep),
        cmocka_unit_test(utf16_without_mark),
        cmocka_unit_test(unknown_keys),
        cmocka_unit_test(types_and_ranges),
        cmocka_unit_test(spellings_that_pass),
        cmocka_unit_test(old_names),
        cmocka_unit_test(flags_win),
        cmocka_unit_test(files),
        cmocka_unit_test(keys_with_an_underscore_are_ignored),
        cmocka_unit_test(all_faults_at_once),
        cmocka_unit_test(keys_that_deepspeed_lets_pass),

    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
