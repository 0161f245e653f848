/* sifr/config.h: what is given, worked out and read back; refusals name the key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sifr/config.h"
#include "sifr/context.h"

static sifr_error error;

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != SIFR_OK) fail_msg("%s", error.message);                                      \
    } while (0)

static sifr_config *open_config(const char *text) {
    sifr_config *config;
    OK(sifr_config_create(&config, &error));
    OK(sifr_config_parse(config, text, strlen(text), "ds.json", &error));
    return config;
}

static void assert_reads(const sifr_config *config, const char *name, const char *want) {
    char *text;
    OK(sifr_config_value(config, name, &text, &error));
    assert_string_equal(text, want);
    sifr_text_free(text);
}

static const char some[] = "{\"train_batch_size\": 8, \"_mine\": 1, \"bf16\": {\"enabled\": true},"
                           " \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 1e-3}}}";

static void values(void **state) {
    (void)state;
    char *text;
    sifr_config *config = open_config(some);
    assert_int_equal(sifr_config_value(config, "max-steps", &text, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "sifr_config_resolve"));
    OK(sifr_config_set(config, "max-steps", "4k", &error));
    OK(sifr_config_set(config, "data", "a.txt", &error));
    OK(sifr_config_set(config, "data", "b.txt", &error));
    OK(sifr_config_resolve(config, 2, &error));
    assert_reads(config, "max-steps", "4000");
    assert_reads(config, "sifr.max_steps", "4000");
    assert_reads(config, "optimizer.params.lr", "0.001");
    assert_reads(config, "train_micro_batch_size_per_gpu", "4");
    assert_reads(config, "data", "[\"a.txt\",\"b.txt\"]");
    assert_reads(config, "model", "null");
    assert_int_equal(sifr_config_value(config, "max-stepz", &text, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "did you mean --max-steps?"));
    assert_int_equal(sifr_config_value(config, "optimizer", &text, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "optimizer has no value of its own"));
    OK(sifr_config_resolve(config, 4, &error)); /* on more ranks */
    assert_reads(config, "train_micro_batch_size_per_gpu", "2");
    assert_int_equal(sifr_config_resolve(config, 3, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "train_batch_size"));
    sifr_config_free(config);
    sifr_config_free(NULL);
}

/* A copy has what was given, and goes its own way: lists of flags, and the file's name too. */
static void copies(void **state) {
    (void)state;
    sifr_config *config = open_config(some), *copy;
    OK(sifr_config_set(config, "data", "a.txt", &error));
    OK(sifr_config_resolve(config, 1, &error));
    OK(sifr_config_copy(config, &copy, &error));
    OK(sifr_config_set(copy, "data", "b.txt", &error));
    OK(sifr_config_resolve(copy, 1, &error));
    assert_reads(copy, "data", "[\"a.txt\",\"b.txt\"]");
    assert_reads(config, "data", "[\"a.txt\"]");
    sifr_config_free(config);
    OK(sifr_config_set(copy, "fp16.enabled", "true", &error));
    assert_int_equal(sifr_config_resolve(copy, 1, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "ds.json: bf16.enabled"));
    OK(sifr_config_set(copy, "fp16.enabled", "false", &error));
    OK(sifr_config_resolve(copy, 1, &error));
    sifr_config_free(copy);
}

static void effective(void **state) {
    (void)state;
    char *first, *again;
    sifr_config *config = open_config(some);
    OK(sifr_config_resolve(config, 1, &error));
    OK(sifr_config_json(config, &first, &error));
    sifr_config *second = open_config(first);
    OK(sifr_config_resolve(second, 1, &error));
    OK(sifr_config_json(second, &again, &error));
    assert_string_equal(first, again);
    sifr_text_free(first);
    sifr_text_free(again);
    sifr_config_free(config);
    sifr_config_free(second);
}

static void find_line(void *user, const char *line) {
    *(int *)user |= strstr(line, "gradient_clipping = 2") != NULL;
}

static void explains(void **state) {
    (void)state;
    int found = 0;
    sifr_config *config = open_config(some);
    OK(sifr_config_set(config, "gradient_clipping", "2", &error));
    OK(sifr_config_explain(config, 1, false, find_line, &found, &error));
    assert_true(found);
    found = 0; /* where the config is refused, too */
    assert_int_equal(sifr_config_explain(config, 3, false, find_line, &found, &error), SIFR_USAGE);
    assert_true(found);
    sifr_config_free(config);
}

static void flags(void **state) {
    (void)state;
    bool found = false;
    size_t count = 0;
    sifr_config_flag flag = {.size = sizeof flag};
    for (; sifr_config_flag_at(count, &flag); count++)
        if (strcmp(flag.name, "max-steps") == 0) {
            found = true;
            assert_string_equal(flag.path, "sifr.max_steps");
            assert_int_equal(flag.group, SIFR_CONFIG_LENGTH);
            assert_true(flag.argument && !flag.many && flag.doc[0]);
        }
    assert_true(found && count > 40);
}

/* What could not be read leaves the config as it was. */
static void refused(void **state) {
    (void)state;
    static const char *const bad[] = {"{\"sifr\": {\"seed\": 3, \"max_stepz\": 2}}",
                                      "{\"sifr\": {\"seed\": 4}",
                                      "{\"sifr\": {\"seed\": \"many\"}}"};
    sifr_config *config;
    OK(sifr_config_create(&config, &error));
    OK(sifr_config_set(config, "max-steps", "7", &error));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(sifr_config_parse(config, bad[i], strlen(bad[i]), "bad.json", &error),
                         SIFR_USAGE);
    OK(sifr_config_parse(config, some, strlen(some), "ds.json", &error));
    OK(sifr_config_resolve(config, 2, &error));
    assert_reads(config, "max-steps", "7");
    assert_reads(config, "sifr.seed", "42");
    assert_reads(config, "optimizer.params.lr", "0.001");
    assert_int_equal(sifr_config_parse(config, some, strlen(some), "again.json", &error),
                     SIFR_USAGE);
    OK(sifr_config_resolve(config, 2, &error));
    assert_reads(config, "optimizer.params.lr", "0.001");
    sifr_config_free(config);
}

/* A list can be set anew; a key is as never given, by whatever it was. */
static void clears(void **state) {
    (void)state;
    sifr_config *config = open_config(some);
    OK(sifr_config_set(config, "data", "a.txt", &error));
    OK(sifr_config_clear(config, "data", &error));
    OK(sifr_config_set(config, "data", "b.txt", &error));
    OK(sifr_config_set(config, "max-steps", "9", &error));
    OK(sifr_config_clear(config, "max_steps", &error));
    OK(sifr_config_clear(config, "bf16.enabled", &error));
    OK(sifr_config_clear(config, "output", &error)); /* not given */
    OK(sifr_config_resolve(config, 1, &error));
    assert_reads(config, "data", "[\"b.txt\"]");
    assert_reads(config, "max-steps", "null");
    assert_reads(config, "bf16.enabled", "false");
    OK(sifr_config_clear(config, "data", &error));
    char *text;
    assert_int_equal(sifr_config_value(config, "data", &text, &error), SIFR_USAGE);
    OK(sifr_config_resolve(config, 1, &error));
    assert_reads(config, "data", "null");
    assert_int_equal(sifr_config_clear(config, "daat", &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "did you mean --data?"));
    assert_int_equal(sifr_config_clear(config, "optimizer", &error), SIFR_USAGE);
    sifr_config_free(config);
}

/* Flags count over the file, in either order. */
static void set_before_load(void **state) {
    (void)state;
    static const char file[] =
        "{\"train_micro_batch_size_per_gpu\": 2, \"sifr\": {\"max_steps\": 3,"
        " \"data\": [\"file.txt\"], \"seed\": 7},"
        " \"gradient_accumulation_steps\": 8}";
    sifr_config *config;
    OK(sifr_config_create(&config, &error));
    OK(sifr_config_set(config, "max-steps", "5", &error));
    OK(sifr_config_set(config, "data", "a.txt", &error));
    OK(sifr_config_parse(config, file, sizeof file - 1, "ds.json", &error));
    OK(sifr_config_set(config, "data", "b.txt", &error));
    OK(sifr_config_resolve(config, 1, &error));
    assert_reads(config, "max-steps", "5");
    assert_reads(config, "data", "[\"a.txt\",\"b.txt\"]");
    assert_reads(config, "sifr.seed", "7");
    /* A flag that gives another key its value reads that one. */
    assert_reads(config, "gradient_accumulation_steps", "8");
    assert_reads(config, "gradient-accumulation-steps", "8");
    OK(sifr_config_set(config, "gradient_accumulation_steps", "4", &error));
    OK(sifr_config_resolve(config, 1, &error));
    assert_reads(config, "gradient_accumulation_steps", "4");
    assert_reads(config, "train_batch_size", "8");
    assert_int_equal(sifr_config_set(config, "optimizer.params.weight_decay", "9e307", &error),
                     SIFR_USAGE);
    assert_non_null(strstr(error.message, "weight_decay: 9e+307 is beyond what fp32 has"));
    assert_int_equal(sifr_config_set(config, "--max-steps", "5", &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "\"--max-steps\"; leave the dashes before it out"));
    sifr_config_free(config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),   cmocka_unit_test(copies),         cmocka_unit_test(effective),
        cmocka_unit_test(explains), cmocka_unit_test(flags),          cmocka_unit_test(refused),
        cmocka_unit_test(clears),   cmocka_unit_test(set_before_load)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
