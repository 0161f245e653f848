/* Numbers out of range: no matter where nobody reads them, refused by name where somebody does. */
#include "support/scratch.h"

#include "base/json.h"
#include "text/tokenizer/tokenizer.h"

static sifr_error error;
static json_t *json;

static sifr_status parse(const char *text) {
    json_decref(json);
    json = NULL;
    return base_json_parse(text, strlen(text), "c.json", &json, &error);
}

static int64_t whole(const char *key) {
    int64_t value = -1;
    assert_int_equal(base_json_int(json, key, 0, &value, "c.json", &error), SIFR_OK);
    return value;
}

/* As transformers 5 writes it: int(1e30). */
#define VERY_LONG "1000000000000000019884624838656"

static void unread(void **state) {
    (void)state;
    assert_int_equal(parse("{\"model_max_length\": " VERY_LONG ", \"least\": -9223372036854775808, "
                           "\"most\": 9223372036854775807, \"text\": \"" VERY_LONG "\", "
                           "\"list\":[" VERY_LONG ",7],\"odd\":1e999,\"low\":-2e308,\"n\":8}"),
                     SIFR_OK);
    assert_true(whole("least") == INT64_MIN);
    assert_true(whole("most") == INT64_MAX);
    assert_int_equal(whole("n"), 8);
    assert_string_equal(json_string_value(json_object_get(json, "text")), VERY_LONG);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(json, "list"), 1)), 7);
    double value;
    assert_int_equal(base_json_double(json, "model_max_length", 0, &value, "c.json", &error),
                     SIFR_OK);
    assert_true(value == 1e30);
    /* As long as a whole number may be, and one more. */
    assert_int_equal(parse("[9223372036854775808, -9223372036854775809]"), SIFR_OK);
    assert_true(json_is_real(json_array_get(json, 0)));
    assert_true(json_is_real(json_array_get(json, 1)));
}

static void read_is_refused(void **state) {
    (void)state;
    static const char *const counts[] = {VERY_LONG, ("-" VERY_LONG), "9223372036854775808",
                                         "1e999"};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        char text[256];
        int64_t value;
        snprintf(text, sizeof text, "{\"layers\": %s}", counts[i]);
        assert_int_equal(parse(text), SIFR_OK);
        assert_int_equal(base_json_int(json, "layers", 0, &value, "c.json", &error), SIFR_USAGE);
        assert_message(&error, "c.json: \"layers\" must be a whole number of 64 bits, not ");
    }
    static const char config[] = "{\"seed\": 99999999999999999999}";
    assert_int_equal(base_json_parse_strict(config, sizeof config - 1, "c.json", &json, &error),
                     SIFR_USAGE);
    assert_message(&error, "c.json: not valid JSON at line 1");
    double value;
    assert_int_equal(parse("{\"rate\": 1e999}"), SIFR_OK);
    assert_int_equal(base_json_double(json, "rate", 0, &value, "c.json", &error), SIFR_USAGE);
    assert_message(&error, "\"rate\" must be a number smaller than 9e307");
    assert_int_equal(parse("{\"rate\": -1e999}"), SIFR_OK);
    assert_int_equal(base_json_double(json, "rate", 0, &value, "c.json", &error), SIFR_USAGE);
}

/* What is wrong beside such a number is still found, at its own place. */
static void places_stay(void **state) {
    (void)state;
    assert_int_equal(parse("{\"a\": " VERY_LONG ",\n\"b\": tru}"), SIFR_USAGE);
    assert_message(&error, "line 2");
    assert_int_equal(parse("{\"a\": 1e999, \"a\": 1}"), SIFR_USAGE);
    assert_message(&error, "duplicate");
    static const char *const bad[] = {"[" VERY_LONG VERY_LONG "-]",
                                      "[" VERY_LONG " 1]",
                                      "[0" VERY_LONG "]",
                                      "[" VERY_LONG "",
                                      "-" VERY_LONG "e",
                                      "[" VERY_LONG ",0x1p9999]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (parse(bad[i]) != SIFR_USAGE) fail_msg("%s: accepted", bad[i]);
}

static void tokenizer_opens(void **state) {
    (void)state;
    char source[4096];
    text_tokenizer *tokenizer = NULL;
    snprintf(source, sizeof source, "%s/tests/golden/models/gpt2/tokenizer.json",
             getenv("SOURCE") ? getenv("SOURCE") : ".");
    assert_int_equal(base_copy_file(source, scratch_path("tokenizer.json"), &error), SIFR_OK);
    scratch_text("tokenizer_config.json", "{\"model_max_length\": " VERY_LONG ", \"eos_token\": "
                                          "\"<|endoftext|>\"}");
    if (text_tokenizer_load(scratch_path("."), &tokenizer, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    text_tokenizer_free(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(unread), cmocka_unit_test(read_is_refused),
                                       cmocka_unit_test(places_stay),
                                       cmocka_unit_test(tokenizer_opens)};
    int failed = cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
    json_decref(json);
    return failed;
}
