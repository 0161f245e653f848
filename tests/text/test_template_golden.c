/* Chat templates against transformers' renderings (tests/golden/make_chat.py): templates of our own
 * for each construct, and hashes for the templates that lie beside the project. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "text/template/template.h"

/* 2026-11-24 13:05:09, a Tuesday, as in the script. */
static const struct tm now = {.tm_year = 126,
                              .tm_mon = 10,
                              .tm_mday = 24,
                              .tm_hour = 13,
                              .tm_min = 5,
                              .tm_sec = 9,
                              .tm_wday = 2,
                              .tm_yday = 327};

static json_t *load(const char *name) {
    char path[BASE_PATH_LENGTH];
    json_t *json;
    sifr_error error = {0};
    const char *source = getenv("SOURCE");
    snprintf(path, sizeof path, "%s/tests/golden/chat/%s", source ? source : ".", name);
    if (base_json_load(path, 1 << 24, &json, &error) != SIFR_OK) fail_msg("%s", error.message);
    return json;
}

static const json_t *member(const json_t *json, const char *section, const char *name) {
    const json_t *value = json_object_get(json_object_get(json, section), name);
    assert_non_null(value);
    return json_is_null(value) ? NULL : value;
}

static sifr_status render(const char *text, size_t size, const char *name,
                          const text_template_input *input, text_template_output *out,
                          sifr_error *error) {
    text_template *t;
    BASE_TRY(text_template_parse(text, size, name, &t, error));
    sifr_status status = text_template_render(t, input, out, error);
    text_template_free(t);
    return status;
}

static size_t characters(const char *text, size_t size) {
    size_t count = 0;
    for (size_t i = 0; i < size; i++) count += ((unsigned char)text[i] & 0xc0) != 0x80;
    return count;
}

/* Spans are stored in characters. */
static bool same_spans(const text_template_output *out, const json_t *wanted) {
    if (out->span_count != json_array_size(wanted)) return false;
    for (size_t i = 0; i < out->span_count; i++) {
        const json_t *pair = json_array_get(wanted, i);
        size_t begin = (size_t)json_integer_value(json_array_get(pair, 0));
        size_t end = (size_t)json_integer_value(json_array_get(pair, 1));
        if (characters(out->text, out->spans[i].begin) != begin ||
            characters(out->text, out->spans[i].end) != end)
            return false;
    }
    return true;
}

/* 1 where the rendering is another than the stored one. */
static int check_case(const json_t *data, const json_t *row) {
    const json_t *template = json_object_get(row, "template"), *text = json_object_get(row, "text");
    const char *source = json_string_value(template);
    text_template_input input = {
        .messages =
            member(data, "conversations", json_string_value(json_object_get(row, "conversation"))),
        .tools = member(data, "tools", json_string_value(json_object_get(row, "tools"))),
        .variables = json_object_get(data, "variables"),
        .add_generation_prompt = json_is_true(json_object_get(row, "prompt")),
        .now = &now};
    text_template_output out = {0};
    sifr_error error = {0};
    int bad = 0;
    sifr_status status = render(source, json_string_length(template), "case", &input, &out, &error);
    if (!text) {
        bad = status != SIFR_USAGE || !strstr(error.message, "case, line 1");
    } else {
        bad = status != SIFR_OK || out.size != json_string_length(text) ||
              memcmp(out.text, json_string_value(text), out.size) != 0 ||
              !same_spans(&out, json_object_get(row, "spans"));
    }
    if (bad)
        print_message("template: %s\nwanted: %s\ngot:    %s\n\n", source,
                      text ? json_string_value(text) : "an error in line 1",
                      status == SIFR_OK ? out.text : error.message);
    text_template_output_free(&out);
    return bad;
}

static void own_templates(void **state) {
    (void)state;
    json_t *data = load("conversations.json"), *rows = load("cases.json");
    size_t count = json_array_size(rows);
    int bad = 0;
    for (size_t i = 0; i < count; i++) bad += check_case(data, json_array_get(rows, i));
    json_decref(data);
    json_decref(rows);
    if (bad) fail_msg("%d of %zu templates give something else", bad, count);
    assert_true(count > 120);
}

static void hash_of(const char *text, size_t size, char out[17]) {
    uint64_t value = 0xcbf29ce484222325;
    for (size_t i = 0; i < size; i++) value = (value ^ (uint8_t)text[i]) * 0x100000001b3;
    snprintf(out, 17, "%016llx", (unsigned long long)value);
}

static const char *folder(char path[BASE_PATH_LENGTH], const char *name) {
    const char *source = getenv("SOURCE");
    snprintf(path, BASE_PATH_LENGTH, "%s/../shared/data/chat_templates%s%s", source ? source : ".",
             *name ? "/" : "", name);
    return path;
}

/* [file, conversation, tools, prompt, more variables, bytes or -1, hash] */
static int check_shared(const json_t *data, const json_t *row, const char *text, size_t size) {
    json_t *variables = json_object();
    bool more = json_is_true(json_array_get(row, 4));
    if (more) json_object_update(variables, json_object_get(data, "more"));
    text_template_input input = {
        .messages = member(data, "conversations", json_string_value(json_array_get(row, 1))),
        .tools = member(data, "tools", json_string_value(json_array_get(row, 2))),
        .variables = variables,
        .bos_token = "<s>",
        .eos_token = "</s>",
        .add_generation_prompt = json_is_true(json_array_get(row, 3)),
        .now = &now};
    text_template_output out = {0};
    sifr_error error = {0};
    char hash[17] = "";
    json_int_t wanted = json_integer_value(json_array_get(row, 5));
    sifr_status status = render(text, size, "shared", &input, &out, &error);
    if (status == SIFR_OK) hash_of(out.text, out.size, hash);
    bool bad = wanted < 0 ? status != SIFR_USAGE
                          : status != SIFR_OK || (json_int_t)out.size != wanted ||
                                strcmp(hash, json_string_value(json_array_get(row, 6))) != 0;
    if (bad)
        print_message("%s, %s, tools %s, prompt %d, more %d: wanted %lld %s, got %zu %s\n",
                      json_string_value(json_array_get(row, 0)),
                      json_string_value(json_array_get(row, 1)),
                      json_string_value(json_array_get(row, 2)), input.add_generation_prompt, more,
                      (long long)wanted, json_string_value(json_array_get(row, 6)), out.size,
                      status == SIFR_OK ? hash : error.message);
    text_template_output_free(&out);
    json_decref(variables);
    return bad;
}

static void shared_templates(void **state) {
    (void)state;
    char path[BASE_PATH_LENGTH];
    if (!base_is_directory(folder(path, ""))) {
        print_message("%s is not there: skipped\n", path);
        skip();
    }
    json_t *data = load("conversations.json"), *rows = load("shared.json");
    size_t count = json_array_size(rows), size = 0;
    char *text = NULL;
    const char *last = "";
    int bad = 0;
    for (size_t i = 0; i < count; i++) {
        const json_t *row = json_array_get(rows, i);
        const char *name = json_string_value(json_array_get(row, 0));
        if (strcmp(name, last) != 0) {
            free(text);
            assert_int_equal(base_read_file(folder(path, name), 1 << 20, &text, &size, NULL),
                             SIFR_OK);
        }
        last = name;
        bad += check_shared(data, row, text, size);
    }
    free(text);
    json_decref(data);
    json_decref(rows);
    print_message("%zu renderings of the templates beside the project\n", count);
    if (bad) fail_msg("%d of %zu renderings differ", bad, count);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(own_templates),
                                       cmocka_unit_test(shared_templates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
