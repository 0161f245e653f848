/* JSON: what is read, within which bounds, and what a value of another kind is answered with. */
#include "base/json.h"

#include <signal.h>
#include <sys/resource.h>

#include "support/scratch.h"

static json_t *parse(const char *text) {
    json_t *value = NULL;
    sifr_error error = {0};
    if (base_json_parse(text, strlen(text), "a.json", &value, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    return value;
}

static void refuse(const char *text, size_t size, const char *part) {
    json_t *value = NULL;
    sifr_error error = {0};
    assert_int_equal(base_json_parse(text, size, "a.json", &value, &error), SIFR_USAGE);
    assert_null(value);
    assert_message(&error, "a.json: ");
    assert_message(&error, part);
}

static void test_parse(void **state) {
    (void)state;
    json_t *value = parse("{\"a\": [1, 2.5, \"x\\u00e4\", null, true]}");
    const json_t *list = json_object_get(value, "a");
    assert_int_equal(json_array_size(list), 5);
    assert_int_equal(json_integer_value(json_array_get(list, 0)), 1);
    assert_true(json_real_value(json_array_get(list, 1)) == 2.5);
    assert_string_equal(json_string_value(json_array_get(list, 2)), "x\xc3\xa4");
    json_decref(value);
}

static void test_invalid(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",       "{",      "{\"a\": }", "[1,]",       "[1] 2",          "{'a': 1}",     "[01]",
        "[nope]", "[0x10]", "[1.]",      "[\"\xff\"]", "[\"\xc0\x80\"]", "[\"\\ud800\"]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        refuse(texts[i], strlen(texts[i]), "not valid JSON at line 1, column ");
    refuse("[1,\n 2,\n !]", 11, "at line 3, column ");
    refuse("{\"a\": 1, \"a\": 2}", 16, "duplicate object key");
    refuse("[1]\0", 4, "not valid JSON: a NUL byte at 3");
    refuse("[\"\\u0000\"]", 10, "column 9: \\u0000 is not supported in a string");
}

/* What Python writes of numbers that JSON has not. */
static void test_python_numbers(void **state) {
    (void)state;
    double number;
    sifr_error error = {0};
    json_t *value = parse("{\"a\": [0.0, Infinity], \"b\": -Infinity,\"c\":NaN,\n\"d\": \"NaN\"}");
    assert_int_equal(json_array_size(json_object_get(value, "a")), 2);
    assert_int_equal(base_json_double(value, "b", 1, &number, "a.json", &error), SIFR_USAGE);
    assert_int_equal(base_json_double(value, "c", 1, &number, "a.json", &error), SIFR_USAGE);
    assert_string_equal(json_string_value(json_object_get(value, "d")), "NaN");
    json_decref(value);
    refuse("[Infinityx]", 11, "not valid JSON at line 1, column ");
    refuse("[1Infinity]", 11, "not valid JSON at line 1, column ");
    refuse("[nan]", 5, "not valid JSON at line 1, column ");
    refuse("{NaN: 1}", 8, "not valid JSON at line 1, column ");
}

/* Numbers are said as they were written. */
static void test_text(void **state) {
    (void)state;
    static const char *const texts[] = {"{\"a\":0.8,\"b\":[0.1,1.0,5e-5]}", "0.1",
                                        "0.30000000000000004", "[1,\"0.80000000000000004\"]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *value = json_loads(texts[i], JSON_DECODE_ANY, NULL);
        char *text = base_json_text(value);
        assert_string_equal(text, texts[i]);
        free(text);
        json_decref(value);
    }
    assert_null(base_json_text(NULL));
}

/* A piece of a file has the lines of the file. */
static void test_piece(void **state) {
    (void)state;
    json_t *value = NULL;
    sifr_error error = {0};
    assert_int_equal(base_json_parse_from("{\n!}", 4, "a.json", 7, 0, &value, &error), SIFR_USAGE);
    assert_message(&error, "a.json: not valid JSON at line 8, column 1: ");
    assert_int_equal(base_json_parse_from("[\0]", 3, "a.json", 7, 0, &value, &error), SIFR_USAGE);
    assert_message(&error, "a.json: line 7: not valid JSON: a NUL byte at 1");
    assert_int_equal(base_json_parse_from("[1]", 3, "a.json", 7, 0, &value, &error), SIFR_OK);
    json_decref(value);
}

static void assert_row(const char *text, const char *sound, const char *faults) {
    json_t *row = NULL, *value, *whole = json_object();
    char found[512] = "";
    const char *key;
    sifr_error error = {0};
    if (base_json_parse_from(text, strlen(text), "a.json", 7, 0, &row, &error) != SIFR_OK)
        fail_msg("%s: %s", text, error.message);
    json_object_foreach(row, key, value) {
        const char *fault = base_json_fault(value);
        if (!fault) json_object_set(whole, key, value);
        if (fault) strcat(strcat(strcat(strcat(found, key), " "), fault), ";");
    }
    char *dumped = json_dumps(whole, JSON_SORT_KEYS | JSON_COMPACT);
    assert_string_equal(dumped, sound);
    assert_string_equal(found, faults);
    free(dumped);
    json_decref(whole);
    json_decref(row);
}

/* Rows that Python's json reads, as they are written by it: what is no JSON is a fault of the
 * member that has it. */
static void test_row(void **state) {
    (void)state;
    assert_row("{\"a\": NaN, \"b\": \"x\"}", "{\"b\":\"x\"}",
               "a holds NaN or Infinity, which JSON does not have;");
    assert_row(" {\"b\":\"x\" , \"a\":{\"c\":[1,-Infinity]}} \r", "{\"b\":\"x\"}",
               "a holds NaN or Infinity, which JSON does not have;");
    assert_row("{\"a\": Infinity, \"b\": \"NaN, }\\\" NaN\"}", "{\"b\":\"NaN, }\\\" NaN\"}",
               "a holds NaN or Infinity, which JSON does not have;");
    assert_row("{\"a\": \"x\\u0000y\", \"b\": \"\\\\u0000\"}", "{\"b\":\"\\\\u0000\"}",
               "a holds \\u0000, which is not supported in a text;");
    assert_row("{\"a\": \"\\uD83D\", \"b\": \"\\ud83d\\ude00\"}", "{\"b\":\"\xf0\x9f\x98\x80\"}",
               "a holds half of a surrogate pair (\\ud800 to \\udfff), which is no text;");
    assert_row("{\"a\": [\"\\ude00\\ud83d\"]}", "{}",
               "a holds half of a surrogate pair (\\ud800 to \\udfff), which is no text;");
    assert_row("{\"a\": 1, \"b\": 2, \"a\": 1}", "{\"b\":2}", "a stands twice in the row;");
    assert_row("{\"b\": 2, \"a\": {\"c\": 1, \"c\": 2}}", "{\"b\":2}",
               "a holds an object with the same key twice;");
    assert_row("{\"a\": 1e400, \"b\": 1e-400}", "{\"b\":0.0}",
               "a holds a number that is too large;");
    assert_row("{\"a\": 123456789012345678901234567890, \"b\": 9007199254740993}",
               "{\"b\":9007199254740993}", "a holds a number that is too large;");
    assert_row("{\"\\ud800\": 1, \"b\": 2}", "{\"b\":2,\"\xef\xbf\xbd\":1}", "");
}

/* What Python does not read either is refused with the parser's words. */
static void test_row_refused(void **state) {
    (void)state;
    static const char *const texts[] = {"{\"a\": NaN,}",
                                        "{\"a\": nan}",
                                        "{\"a\": -NaN}",
                                        "{\"a\": NaNa}",
                                        "{\"a\": +Infinity}",
                                        "{\"a\": NaN} x",
                                        "{\"a\" NaN}",
                                        "{a: NaN}",
                                        "{\"a\": 01e999}",
                                        "{\"a\": \"\\ud800}",
                                        "{\"a\": [NaN}}",
                                        "{\"a\": NaN",
                                        "{\"a\": NaN, 1}",
                                        "{\"a\": \"\\u000g\"}",
                                        "{\"a\": NaN, \"b\"}",
                                        "{NaN: 1}",
                                        "[NaN]",
                                        "{\"a\": NaN \"b\": 1}",
                                        "{\"a\": NaN\xff}",
                                        "{\"a\": \"\n\\ud800\"}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *row = NULL;
        sifr_error error = {0};
        sifr_status status =
            base_json_parse_from(texts[i], strlen(texts[i]), "a.json", 7, 0, &row, &error);
        if (status != SIFR_USAGE) fail_msg("%s is read", texts[i]);
        assert_message(&error, "a.json: not valid JSON at line ");
    }
}

/* Brackets in strings are no levels. */
static void test_depth(void **state) {
    (void)state;
    char text[3 * BASE_JSON_DEPTH] = "";
    memset(text, '[', BASE_JSON_DEPTH);
    memset(text + BASE_JSON_DEPTH, ']', BASE_JSON_DEPTH);
    json_decref(parse(text));
    memset(text, '[', BASE_JSON_DEPTH + 1);
    memset(text + BASE_JSON_DEPTH + 1, ']', BASE_JSON_DEPTH + 1);
    refuse(text, strlen(text), "nested deeper than 64 levels");
    memset(text, 0, sizeof text);
    strcpy(text, "[\"\\\"");
    memset(text + 4, '[', BASE_JSON_DEPTH + 1);
    strcat(text, "\"]");
    json_decref(parse(text));
}

static void test_values(void **state) {
    (void)state;
    size_t size = 2 * BASE_JSON_VALUES + 2;
    char *text = malloc(size + 1);
    assert_non_null(text);
    for (size_t i = 0; i < BASE_JSON_VALUES; i++) memcpy(text + 1 + 2 * i, "0,", 2);
    text[0] = '[';
    memcpy(text + size - 1, "0]", 2);
    refuse(text, size + 1, "of more than 4,194,304 values is not supported");
    free(text);
}

/* Where every key is read, one out of range is an error of its own (see test_json_range.c). */
static void test_strict(void **state) {
    (void)state;
    json_t *value = NULL;
    sifr_error error = {0};
    const char *text = "{\"n\":\n 1000000000000000019884624838656}";
    assert_int_equal(base_json_parse_strict(text, strlen(text), "a.json", &value, &error),
                     SIFR_USAGE);
    assert_null(value);
    assert_message(&error, "a.json: not valid JSON at line 2");
    assert_int_equal(base_json_parse_strict("[1]", 3, "a.json", &value, &error), SIFR_OK);
    assert_int_equal(json_integer_value(json_array_get(value, 0)), 1);
    json_decref(value);
}

static void test_load(void **state) {
    (void)state;
    json_t *value = NULL;
    sifr_error error = {0};
    const char *path = scratch_text("a.json", "{\"a\": 1}");
    assert_int_equal(base_json_load(path, 8, &value, &error), SIFR_OK);
    json_decref(value);
    value = NULL;
    assert_int_equal(base_json_load(path, 7, &value, &error), SIFR_FAILED);
    assert_message(&error, "8 bytes, more than the limit of 7");
    assert_int_equal(base_json_load(scratch_path("absent"), 8, &value, &error), SIFR_FAILED);
    assert_int_equal(base_json_load(scratch_text("b.json", "{"), 8, &value, &error), SIFR_USAGE);
    assert_message(&error, "b.json: not valid JSON at line 1, column 1");
    assert_null(value);
}

/* --- members --- */

static void test_int(void **state) {
    (void)state;
    json_t *value = parse("{\"a\": -3, \"b\": 5e8, \"c\": null, \"d\": 1.5, \"e\": \"4\", \"f\": "
                          "9007199254740993.0, \"g\": 9223372036854775807, \"h\": 1e17}");
    int64_t out = 0;
    sifr_error error = {0};
    static const struct {
        const char *key;
        int64_t wanted;
    } good[] = {{"a", -3}, {"b", 500000000}, {"c", 42}, {"absent", 42}, {"g", INT64_MAX}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(base_json_int(value, good[i].key, 42, &out, "w", &error), SIFR_OK);
        assert_int_equal(out, good[i].wanted);
    }
    assert_int_equal(base_json_int(value, "d", 42, &out, "w", &error), SIFR_USAGE);
    assert_string_equal(error.message, "w: \"d\" must be a whole number, not 1.5");
    assert_int_equal(base_json_int(value, "e", 42, &out, "w", &error), SIFR_USAGE);
    assert_string_equal(error.message, "w: \"e\" must be a whole number, not \"4\"");
    assert_int_equal(base_json_int(value, "h", 42, &out, "w", &error), SIFR_USAGE);
    assert_int_equal(base_json_int(value, "f", 42, &out, "w", &error), SIFR_OK); /* 2^53 as read */
    json_decref(value);
}

static void test_others(void **state) {
    (void)state;
    json_t *value = parse("{\"n\": 2, \"r\": -0.5, \"t\": true, \"f\": false, \"s\": \"text\", "
                          "\"null\": null, \"list\": [1, {}]}");
    double number = 0;
    bool truth = false;
    const char *text = NULL;
    sifr_error error = {0};
    assert_int_equal(base_json_double(value, "n", 9, &number, "w", &error), SIFR_OK);
    assert_true(number == 2);
    assert_int_equal(base_json_double(value, "r", 9, &number, "w", &error), SIFR_OK);
    assert_true(number == -0.5);
    assert_int_equal(base_json_double(value, "null", 9, &number, "w", &error), SIFR_OK);
    assert_true(number == 9);
    assert_int_equal(base_json_double(value, "s", 9, &number, "w", &error), SIFR_USAGE);
    assert_string_equal(error.message, "w: \"s\" must be a number, not \"text\"");
    assert_int_equal(base_json_bool(value, "t", false, &truth, "w", &error), SIFR_OK);
    assert_true(truth);
    assert_int_equal(base_json_bool(value, "f", true, &truth, "w", &error), SIFR_OK);
    assert_false(truth);
    assert_int_equal(base_json_bool(value, "absent", true, &truth, "w", &error), SIFR_OK);
    assert_true(truth);
    assert_int_equal(base_json_bool(value, "n", true, &truth, "w", &error), SIFR_USAGE);
    assert_string_equal(error.message, "w: \"n\" must be true or false, not 2");
    assert_int_equal(base_json_string(value, "s", "none", &text, "w", &error), SIFR_OK);
    assert_string_equal(text, "text");
    assert_int_equal(base_json_string(value, "null", "none", &text, "w", &error), SIFR_OK);
    assert_string_equal(text, "none");
    assert_int_equal(base_json_string(value, "absent", NULL, &text, "w", &error), SIFR_OK);
    assert_null(text);
    assert_int_equal(base_json_string(value, "list", NULL, &text, "w", &error), SIFR_USAGE);
    assert_string_equal(error.message, "w: \"list\" must be a string, not [1,{}]");
    json_decref(value);
}

/* --- writing --- */

static void test_save(void **state) {
    (void)state;
    char *text;
    size_t size;
    sifr_error error = {0};
    json_t *value = parse("{\"a\": [1, \"x\"], \"b\": 0.25}");
    const char *path = scratch_text("out.json", "old");
    assert_int_equal(base_json_save(value, path, &error), SIFR_OK);
    assert_int_equal(base_read_file(path, 1000, &text, &size, &error), SIFR_OK);
    assert_string_equal(text, "{\n  \"a\": [\n    1,\n    \"x\"\n  ],\n  \"b\": 0.25\n}\n");
    free(text);
    json_t *again = NULL;
    assert_int_equal(base_json_load(path, 1000, &again, &error), SIFR_OK);
    assert_true(json_equal(value, again));
    json_decref(again);
    json_decref(value);
}

/* A file that has no room for it is not there at all. */
static void test_save_without_room(void **state) {
    (void)state;
    struct rlimit limit, before;
    sifr_error error = {0};
    json_t *value = json_array();
    for (int i = 0; i < 100000; i++) json_array_append_new(value, json_integer(i));
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 300000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    sifr_status status = base_json_save(value, scratch_path("large.json"), &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, SIFR_FAILED);
    assert_message(&error, "large.json: cannot write");
    scratch_expect_empty();
    assert_int_equal(base_json_save(value, scratch_path("nowhere/a.json"), &error), SIFR_FAILED);
    json_decref(value);
}

int main(void) {
#define EACH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_invalid),
        cmocka_unit_test(test_python_numbers),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_piece),
        cmocka_unit_test(test_row),
        cmocka_unit_test(test_row_refused),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_strict),
        EACH(test_load),
        cmocka_unit_test(test_int),
        cmocka_unit_test(test_others),
        EACH(test_save),
        EACH(test_save_without_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
