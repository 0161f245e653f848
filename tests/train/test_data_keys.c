/* Keys of the data: each with each kind of model and data is read or refused by its name, and its
 * default is neither. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "train/prepare/data_keys.h"

/* As many as MODEL_TASKS of models, and next tokens once more, of rows. */
enum { ROWS = 1, TEXT = 2, MASKED = 4, SEQUENCES = 8, TOKENS = 16 };
static const struct {
    unsigned kind;
    model_task task;
    bool rows;
} kinds[] = {{ROWS, MODEL_NEXT_TOKEN, true},
             {TEXT, MODEL_NEXT_TOKEN, false},
             {MASKED, MODEL_MASKED_TOKEN, false},
             {SEQUENCES, MODEL_SEQUENCE_CLASSES, false},
             {TOKENS, MODEL_TOKEN_CLASSES, false}};

static const struct {
    const char *name, *value, *fallback; /* fallback: NULL: there is none */
    unsigned read;                       /* by these */
} keys[] = {
    {"data_type", "messages", "auto", ROWS},         {"train_on", "all", "assistant", ROWS},
    {"skip_bad_rows", "true", "false", ROWS},        {"text_column", "x", NULL, SEQUENCES | TOKENS},
    {"label_column", "x", NULL, SEQUENCES | TOKENS}, {"pair_column", "x", NULL, SEQUENCES},
    {"mlm_probability", "0.9", "0.15", MASKED}};

static sifr_status check(const char *name, const char *value, size_t kind, sifr_error *error) {
    sifr_config config;
    char path[64];
    snprintf(path, sizeof path, "sifr.%s", name);
    assert_int_equal(config_create(&config, error), SIFR_OK);
    if (config_set(&config, path, value, error) != SIFR_OK) fail_msg("%s", error->message);
    if (config_set(&config, "train_micro_batch_size_per_gpu", "1", error) != SIFR_OK)
        fail_msg("%s", error->message);
    if (config_resolve(&config, 1, error) != SIFR_OK) fail_msg("%s", error->message);
    sifr_status status =
        train_check_data_keys(&config, kinds[kind].task, kinds[kind].rows, "books.txt", error);
    config_free(&config);
    return status;
}

static void test_each_with_each(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            sifr_error error;
            size_t length = strlen(keys[i].name);
            bool read = keys[i].read & kinds[k].kind;
            sifr_status status = check(keys[i].name, keys[i].value, k, &error);
            if (status != (read ? SIFR_OK : SIFR_USAGE))
                fail_msg("%s of kind %zu: %d", keys[i].name, k, (int)status);
            if (!read && (strncmp(error.message, keys[i].name, length) != 0 ||
                          !strstr(error.message, "leave it out")))
                fail_msg("%s: %s", keys[i].name, error.message);
            if (keys[i].fallback)
                assert_int_equal(check(keys[i].name, keys[i].fallback, k, &error), SIFR_OK);
        }
}

static void test_words(void **state) {
    (void)state;
    sifr_error error;
    assert_int_equal(check("train_on", "all", 1, &error), SIFR_USAGE);
    assert_string_equal(error.message, "train_on: books.txt is text or a token store, which has no "
                                       "rows; leave it out");
    assert_int_equal(check("mlm_probability", "0.9", 0, &error), SIFR_USAGE);
    assert_string_equal(
        error.message, "mlm_probability is of text for masked_lm, not for causal_lm; leave it out");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_with_each),
                                       cmocka_unit_test(test_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
