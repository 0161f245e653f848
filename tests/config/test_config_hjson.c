/* HJSON against the reader that DeepSpeed uses (tests/golden/make_hjson.py), numbers and truths in
 * quotes, configs in base64. */
#include "config/config_case.h"

#include "config/config_private.h"

static bool same(const json_t *a, const json_t *b) {
    const char *name;
    json_t *member;
    size_t i;
    if (json_is_number(a) && json_is_number(b)) return json_number_value(a) == json_number_value(b);
    if (json_typeof(a) != json_typeof(b)) return false;
    if (json_object_size(a) != json_object_size(b) || json_array_size(a) != json_array_size(b))
        return false;
    json_object_foreach((json_t *)a, name, member) {
        const json_t *other = json_object_get(b, name);
        if (!other || !same(member, other)) return false;
    }
    json_array_foreach(a, i, member) {
        if (!same(member, json_array_get(b, i))) return false;
    }
    return json_is_object(a) || json_is_array(a) || json_equal(a, b);
}

static void as_hjson_reads(void **state) {
    (void)state;
    char path[4096];
    assert_non_null(getenv("SOURCE"));
    snprintf(path, sizeof path, "%s/tests/golden/hjson.json", getenv("SOURCE"));
    json_t *rows = json_load_file(path, 0, NULL), *row;
    assert_non_null(rows);
    size_t i, refused = 0;
    json_array_foreach(rows, i, row) {
        const char *text = json_string_value(json_object_get(row, "text"));
        json_t *wanted = json_object_get(row, "value"), *got = NULL;
        sifr_error error = {0};
        sifr_status status = config_hjson(text, strlen(text), "ds.hjson", &got, &error);
        if (!wanted) {
            if (status != SIFR_USAGE) fail_msg("not refused: %s", text);
            assert_non_null(strstr(error.message, "ds.hjson: not valid HJSON at line "));
            refused++;
            continue;
        }
        if (status != SIFR_OK) fail_msg("%s: %s", text, error.message);
        if (!same(got, wanted)) fail_msg("%s: %s", text, json_dumps(got, JSON_ENCODE_ANY));
        json_decref(got);
    }
    assert_true(i - refused > 40);
    assert_true(refused > 12);
    json_decref(rows);
}

static void fails(const char *text, size_t size, const char *message) {
    json_t *got = NULL;
    sifr_error error = {0};
    if (config_hjson(text, size, "c", &got, &error) != SIFR_USAGE)
        fail_msg("not refused: %s", text);
    assert_string_equal(error.message, message);
}

static void positions(void **state) {
    (void)state;
    static const char nul[] = "a: 1\n\0";
    char deep[400] = "";
    for (int i = 0; i < 70; i++) strcat(deep, "{a:");
    fails("a: 1\nb: {\n  c: [1\n", 18,
          "c: not valid HJSON at line 4, column 1: a closing ] is missing");
    fails("a: 1\n  b 2\n", 11,
          "c: not valid HJSON at line 2, column 5: a colon is missing behind the key");
    fails("a: x\nb: y, \"c\": 2\n", 18,
          "c: not valid HJSON at line 2, column 4: text without quotes holds a quote; is a comma "
          "missing?");
    fails("a: 1\na: 2", 9, "c: not valid HJSON at line 2, column 1: duplicate key \"a\"");
    fails("a: 1e999", 8, "c: not valid HJSON at line 1, column 4: the number is too large");
    fails("a: 99999999999999999999", 23,
          "c: not valid HJSON at line 1, column 4: the number is too large");
    fails("a: \"\\ud800\"", 11,
          "c: not valid HJSON at line 1, column 7: \\u stands for no character");
    fails("a: \"x\ny\"", 8,
          "c: not valid HJSON at line 1, column 6: a string in quotes ends on its line");
    fails("a: \xff", 4, "c: not valid HJSON at line 1, column 4: the string is not valid UTF-8");
    fails(nul, 6, "c: not valid HJSON at line 2, column 1: a NUL byte");
    fails("/* x", 4, "c: not valid HJSON at line 1, column 1: the comment has no end; add */");
    fails(deep, strlen(deep),
          "c: not valid HJSON at line 1, column 194: nested deeper than 64 levels");
}

/* What comes of both readers: the message is that of the one whose text it looks like. */
static void as_a_config(void **state) {
    (void)state;
    config_case *c = config_case_text("# comments\nzero_optimization: {\n  stage: 2 # two\n}\n"
                                      "bf16: {enabled: true}\nsifr: {model: models/a#1\n}");
    config_case_accepted(c);
    assert_int_equal(c->config.step.zero.stage, 2);
    assert_int_equal(c->config.step.precision, SIFR_BF16);
    assert_string_equal(c->config.model, "models/a#1");
    config_case_free(c);
    config_refused("zero_optimization: {\n  stagee: 2\n}",
                   "ds.json: unknown key zero_optimization.stagee; did you mean "
                   "zero_optimization.stage?");
    config_refused("zero_optimization {\n}",
                   "ds.json: not valid HJSON at line 1, column 19: a colon is missing behind the "
                   "key");
}

static void in_quotes(void **state) {
    (void)state;
    config_case *c = config_case_text(
        "{\"optimizer\": {\"params\": {\"lr\": \"1e-4\", \"betas\": [\"0.9\", \"0.95\"]}},"
        "\"zero_optimization\": {\"stage\": \"3\", \"sub_group_size\": \"1e9\", \"overlap_comm\": "
        "\"False\"}, \"bf16\": {\"enabled\": \"true\"}, \"gradient_clipping\": \"1\"}");
    config_case_accepted(c);
    assert_true(c->config.lr == 1e-4);
    assert_true(c->config.step.optimizer.beta2 == 0.95);
    assert_int_equal(c->config.step.zero.stage, 3);
    assert_false(c->config.step.zero.overlap_comm);
    assert_int_equal(c->config.step.precision, SIFR_BF16);
    config_case_free(c);
    static const char *const wrong[] = {"1 ", "0x10", "1e999", "inf", "nan", "--1", "1e", "", "."};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[80];
        snprintf(text, sizeof text, "{\"gradient_clipping\": \"%s\"}", wrong[i]);
        c = config_case_text(text);
        if (c->status != SIFR_USAGE) fail_msg("not refused: %s", text);
        config_case_free(c);
    }
}

static sifr_status load(const char *path, sifr_config *config, sifr_error *error) {
    assert_int_equal(config_create(config, error), SIFR_OK);
    sifr_status status = config_load(config, path, error);
    return status == SIFR_OK ? config_resolve(config, 1, error) : status;
}

static void in_base64(void **state) {
    (void)state;
    sifr_config config;
    sifr_error error = {0};
    /* {"gradient_clipping": 0.5, "_": "???>"}, with - and _, and with + and / */
    static const char *const texts[] = {
        "eyJncmFkaWVudF9jbGlwcGluZyI6IDAuNSwgIl8iOiAiPz8_PiJ9",
        "eyJncmFkaWVudF9jbGlwcGluZyI6IDAuNSwgIl8iOiAiPz8/PiJ9",
        "e2dyYWRpZW50X2NsaXBwaW5nOiAwLjV9", /* HJSON */
        "IHsgImdyYWRpZW50X2NsaXBwaW5nIjogMC41IH0=",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (load(texts[i], &config, &error) != SIFR_OK) fail_msg("%zu: %s", i, error.message);
        assert_true(config.step.gradient_clipping == 0.5);
        config_free(&config);
    }
    assert_int_equal(load("e2JhZDogMX0=", &config, &error), SIFR_USAGE); /* {bad: 1} */
    assert_non_null(strstr(error.message, "the config in base64: unknown key bad"));
    config_free(&config);
    static const char *const files[] = {"config.json", "eyJ", "e2Jhe", "e2Jh!D1X", "Zm9v"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        assert_int_equal(load(files[i], &config, &error), SIFR_FAILED);
        config_free(&config);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_hjson_reads), cmocka_unit_test(positions),
        cmocka_unit_test(as_a_config),    cmocka_unit_test(in_quotes),
        cmocka_unit_test(in_base64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
