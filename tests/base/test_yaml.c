/* YAML as JSON: PyYAML's scalars, aliases, merge keys, bounds, refusals with their places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/yaml.h"

static void reads(const char *text, const char *wanted) {
    json_t *value = NULL;
    sifr_error error = {0};
    if (base_yaml_parse(text, strlen(text), "t", &value, &error) != SIFR_OK)
        fail_msg("%s: %s", text, error.message);
    char *got = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
    assert_string_equal(got, wanted);
    free(got);
    json_decref(value);
}

static void refuses(const char *text, const char *message) {
    json_t *value = NULL;
    sifr_error error = {0};
    if (base_yaml_parse(text, strlen(text), "t", &value, &error) != SIFR_USAGE)
        fail_msg("not refused: %s", text);
    assert_null(value);
    assert_string_equal(error.message, message);
}

static void scalars(void **state) {
    (void)state;
    reads("", "null");
    reads("[1, -2, +3, 0x1f, 0o17, 017, 0, 1.5, 1e-4, -2.5e3, .5, 1., 12345678901234567890]",
          "[1,-2,3,31,15,15,0,1.5,0.0001,-2500.0,0.5,1.0,1.23457e19]");
    reads("[true, Yes, on, FALSE, no, Off, null, ~, '', \"1\", !!str 2, ! 3]",
          "[true,true,true,false,false,false,null,null,\"\",\"1\",\"2\",\"3\"]");
    reads("[1_000, 1e, --1, 0x, 0o, 0o-1, 08, 1.2.3, .inf, .nan, nan, 2024-01-01, e5, '.']",
          "[\"1_000\",\"1e\",\"--1\",\"0x\",\"0o\",\"0o-1\",\"08\",\"1.2.3\",\".inf\",\".nan\","
          "\"nan\","
          "\"2024-01-01\",\"e5\",\".\"]");
    reads("a: |\n  x\n  y\nb: >\n  x\n  y\n", "{\"a\":\"x\\ny\\n\",\"b\":\"x y\\n\"}");
    reads("1: a\ntrue: b\n", "{\"1\":\"a\",\"true\":\"b\"}");
}

static void aliases(void **state) {
    (void)state;
    reads("a: &x {p: 1}\nb: *x\n", "{\"a\":{\"p\":1},\"b\":{\"p\":1}}");
    reads("a: &x 1\nb: &x 2\nc: *x\n", "{\"a\":1,\"b\":2,\"c\":2}");
    reads("a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}\n",
          "{\"a\":{\"p\":1,\"q\":2},\"b\":{\"q\":3,\"p\":1}}");
    reads("b: {<<: [{p: 1}, {p: 2, q: 2}]}\n", "{\"b\":{\"p\":1,\"q\":2}}");
    refuses("a: *x\n",
            "t: not valid YAML at line 1, column 4: an alias of nothing that is complete");
    refuses("a: &x [*x]\n",
            "t: not valid YAML at line 1, column 8: an alias of nothing that is complete");
    refuses("a: {<<: 1}\n", "t: not valid YAML at line 1, column 4: << takes a mapping");
    refuses("a: {<<: [1]}\n", "t: not valid YAML at line 1, column 4: << takes mappings");
}

/* Nine levels of nine aliases each: 9^9 values. */
static void bounds(void **state) {
    (void)state;
    char text[4096] = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n", deep[400] = "";
    for (int i = 1; i < 9; i++) {
        char line[200];
        snprintf(line, sizeof line,
                 "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i, i - 1,
                 i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
        strcat(text, line);
    }
    refuses(text,
            "t: not valid YAML at line 5, column 40: more than 65,536 values, with those that "
            "aliases repeat");
    for (int i = 0; i < 65; i++) strcat(deep, "[");
    refuses(deep, "t: not valid YAML at line 1, column 65: nested deeper than 64 levels");
}

static void refusals(void **state) {
    (void)state;
    refuses("a: 1\na: 2\n", "t: not valid YAML at line 2, column 1: a key that is there already");
    refuses("a: 1\n---\nb: 2\n", "t: not valid YAML at line 2, column 1: a second document");
    refuses("a: !!python/object:x.Y {}\n",
            "t: not valid YAML at line 1, column 4: a tag of a program's own");
    refuses("a: !own 1\n", "t: not valid YAML at line 1, column 4: a tag of a program's own");
    refuses("a: !!set {b}\n", "t: not valid YAML at line 1, column 4: a tag of a program's own");
    refuses("? [a]\n: 1\n", "t: not valid YAML at line 1, column 3: a key that is no text");
    refuses("a: \"x\\0y\"\n", "t: not valid YAML at line 1, column 4: a string with a NUL");
    refuses("a: [1\n", "t: not valid YAML at line 2, column 1: did not find expected ',' or ']'");
    refuses(
        "a: 1\n b: 2\n",
        "t: not valid YAML at line 2, column 3: mapping values are not allowed in this context");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars),
        cmocka_unit_test(aliases),
        cmocka_unit_test(bounds),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
