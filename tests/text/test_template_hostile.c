/* Templates that mean harm, or that need what is not built: one line of message with the file and
 * the line, in bounded time and memory. And where a folder's template is found.
 * sanitizers in the soak alone: templates run to their bound of steps, which takes minutes there */
#include "base/json.h"
#include "support/scratch.h"
#include "text/chat_template.h"

static const char one_message[] = "[{\"role\": \"user\", \"content\": \"hi\"}]";

static sifr_status render(const char *text, size_t size, text_template_output *out,
                          sifr_error *error) {
    text_template *t;
    json_t *messages = NULL;
    BASE_TRY(text_template_parse(text, size, "some/x.jinja", &t, error));
    assert_int_equal(base_json_parse(one_message, sizeof one_message - 1, "m", &messages, NULL),
                     SIFR_OK);
    text_template_input input = {.messages = messages};
    sifr_status status = text_template_render(t, &input, out, error);
    json_decref(messages);
    text_template_free(t);
    return status;
}

static void refused_bytes(const char *text, size_t size, const char *part) {
    text_template_output out;
    sifr_error error = {0};
    if (render(text, size, &out, &error) != SIFR_USAGE) fail_msg("accepted: %.60s", text);
    assert_message(&error, part);
    assert_message(&error, "some/x.jinja, line ");
}

static void refused(const char *text, const char *part) {
    refused_bytes(text, strlen(text), part);
}

static void test_constructs(void **state) {
    (void)state;
    refused("a\n{% include 'x' %}", "line 2: {% include %} is not supported (supported: for,");
    refused("{% extends '/etc/passwd' %}", "{% extends %} is not supported");
    refused("{% import 'x' as y %}", "{% import %}");
    refused("{% from 'x' import y %}", "{% from %}");
    refused("{% block x %}{% endblock %}", "{% block %}");
    refused("{% autoescape true %}{% endautoescape %}", "{% autoescape %}");
    refused("\n\n{{ 'x'|urlize }}", "line 3: not supported yet: the filter \"urlize\"");
    refused("{{ 'x'|nosuch }}", "Jinja does not have the filter \"nosuch\"");
    refused("{{ 'x' is filter }}", "not supported yet: the test \"filter\"");
    refused("{{ ['a']|map('urlize')|list }}", "not supported yet: the filter \"urlize\"");
    refused("{{ '{}'.format(1) }}", "format is not supported yet");
    refused("{{ '%c' % 1 }}", "formatting with %: the conversion is not supported");
    refused("{{ '%9999d' % 1 }}", "a width or precision above 1000");
    refused("{{ '%(a' % 1 }}", "formatting with %: a ( without )");
    refused("{{ f(*[1]) }}", "arguments with * or **");
    refused("{% for x in ['a'] recursive %}{{ loop(x) }}{% endfor %}", "nested");
    refused("{% for x in [1] recursive %}{{ loop() }}{% endfor %}", "loop is called with one list");
    refused("{% for (a, b) in [] %}{% endfor %}", "brackets in a target");
    refused("{{ 0x10 }}", "numbers like 0x10");
    refused("{{ 99999999999999999999 }}", "beyond 64 bits");
    refused("{{ 9223372036854775807 + 1 }}", "beyond 64 bits");
    refused("{{ '\\N{DIGIT ONE}' }}", "the escape \\N");
    refused("{{ '\\ud83d' }}", "the escape \\u");
    refused("{{ naïve }}", "names are ASCII");
    refused("{{ lipsum() }}", "lipsum is not supported yet");
    refused("{{ strftime_now('%d') }}", "there is no clock here");
    refused("{{ [].append(1) }}", "append is undefined or not supported");
    refused("{{ ''.__class__.__mro__ }}", "__class__ is undefined");
    refused("{{ {[1]: 2} }}", "a value of type list as a key");
    refused("{{ {'a': 1}.items() }}", "view of a dict cannot be printed");
    refused("{{ range }}", "function cannot be printed");
    refused("{{ ('a'|safe) + 1 }}", "'+' of safe string and int is not possible");
    refused("{{ ('a'|safe) == 'a' }}", "comparing a string marked safe");
    refused("{{ ('a'|safe)[0] }}", "of a string marked safe");
    refused("{{ ('a'|safe).upper() }}", "upper of a string marked safe");
    refused("{% macro m() %}{{ varargs }}{% endmacro %}", "varargs of a macro is not supported");
    refused("{{ [1][0, 1] }}", "commas in [ ]");
}

static void test_unfinished(void **state) {
    (void)state;
    refused("x\n{% if a %}\n\ny", "line 2: the block that begins here has no {% endif %}");
    refused("{% for x in y %}", "has no {% endfor %}");
    refused("{% macro m() %}{{ 1 }}", "has no {% endmacro %}");
    refused("\n{{ 'a", "line 2: a string without its second '");
    refused("{{ 'a\n\n' }} {{ (1", "line 3: expected ')', found the end of the template");
    refused("{# a", "{# without #}");
    refused("\r\n\r\n{% raw %}", "line 3: {% raw %} without");
    refused("{% break %}", "{% break %} outside of a loop");
    refused("{% for x in [1] %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "outside");
    refused_bytes("a\0\xff", 3, "not valid UTF-8");
    refused("\xc3", "not valid UTF-8");
    refused("\xed\xa0\x80", "not valid UTF-8");
}

static void test_bounds(void **state) {
    (void)state;
    refused("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
            "more than 20000000 steps");
    refused("{{ range(1000000000) }}", "range: 1000000000 items, at most 100000");
    refused("{{ range(-9223372036854775807, 9223372036854775807, 1) }}", "range");
    refused("{{ 'a' * 1000000000 }}", "a text of more than 64 MiB");
    refused("{{ 'abc' * 9223372036854775807 }}", "a text of more than 64 MiB");
    refused("{{ [1] * 1000000000 }}", "more than 20000000 steps");
    refused("{% set s = namespace(a='aaaaaaaa') %}{% for i in range(60) %}"
            "{% set s.a = s.a + s.a %}{% endfor %}",
            "line 1: ");
    refused("{% set s = namespace(a=[1, 2]) %}{% for i in range(60) %}"
            "{% set s.a = s.a + s.a %}{% endfor %}",
            "line 1: ");
    refused("{% set s = namespace(a='a' * 1000000) %}{% for i in range(90000) %}"
            "{% set s.a = s.a ~ 'b' %}{% endfor %}",
            "more than 256 MiB of memory");
    refused("{% for i in range(90000) %}{{ 'aaaaaaaa' * 1000 }}{% endfor %}", "more than ");
    refused("{{ 'aaaa'|indent(100000000) }}", "more than 64 MiB");
    refused("{{ [1]|tojson(indent=1000000000) }}", "more than 64 MiB");
    refused("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nested deeper than 500");
    refused("{% set s = namespace(a=[]) %}{% for i in range(9999) %}{% set s.a = [s.a] %}"
            "{% endfor %}{{ s.a }}",
            "nested deeper than 500");
    refused("{% set s = namespace(a=[]) %}{% for i in range(9999) %}{% set s.a = [s.a] %}"
            "{% endfor %}{{ s.a|tojson }}",
            "nested deeper than 500");
    refused("{% set s = namespace(a=[], b=[]) %}{% for i in range(9999) %}{% set s.a = [s.a] %}"
            "{% set s.b = [s.b] %}{% endfor %}{{ s.a == s.b }}",
            "nested deeper than 500");
    refused("{{ ('a' * 60000000).replace('a', 'bbbbbbbbbb') }}", "more than ");
    /* Work that takes no memory counts as well. */
    refused("{% set b = ('b' * 9000000) ~ 'a' %}{{ ('a' * 9000000).strip(b) }}", "steps");
    refused("{% set b = ('a' * 900000) ~ 'b' %}{{ ('a' * 9000000).rfind(b) }}", "steps");
    refused("{% set b = ('a' * 900000) ~ 'b' %}{{ ('a' * 9000000).rsplit(b) }}", "steps");
    refused("{% set b = 'a' * 60000000 %}{% for i in range(99999) %}{% if b.isupper() or "
            "b.startswith(b[1:]) and b.splitlines()|length == 0 %}{% endif %}{% endfor %}",
            "more than ");
    refused("{% set b = 'a' * 9000000 %}{% set d = {b ~ '1': 1, b ~ '2': 2, b ~ '3': 3} %}"
            "{% set k = b ~ '4' %}{% for i in range(99999) %}{% for j in range(99999) %}"
            "{% if k in d %}{% endif %}{% endfor %}{% endfor %}",
            "steps");
    static const char *const repeated[] = {"{% set b = 'a' * 9000000 %}", "b.split()",
                                           "{% set b = ' ' * 9000000 %}", "b.split()",
                                           "{% set b = ' ' * 9000000 %}", "b.rsplit(none, 3)",
                                           "{% set b = [''] * 999999 %}", "b|join",
                                           "{% set b = [''] * 999999 %}", "''.join(b)",
                                           "{% set b = [0] * 999999 %}",  "b|sum"};
    for (size_t i = 0; i < sizeof repeated / sizeof *repeated; i += 2) {
        char text[300];
        snprintf(text, sizeof text,
                 "%s{%% for i in range(99999) %%}{%% for j in range(99999) %%}{%% if %s %%}"
                 "{%% endif %%}{%% endfor %%}{%% endfor %%}",
                 repeated[i], repeated[i + 1]);
        refused(text, "steps");
    }
    refused("{{ 10 ** 30 }}", "beyond 64 bits");
    refused("{{ 2 ** 9223372036854775807 }}", "beyond 64 bits");
    refused("{{ (-9223372036854775807 - 1) // -1 }}", "beyond 64 bits");
    refused("{{ (-9223372036854775807 - 1)|abs }}", "too large");
}

/* `count` times `unit`, around or before `middle`. */
static void refused_many(const char *unit, size_t count, const char *part) {
    size_t size = strlen(unit);
    char *text = malloc(size * count + 3);
    assert_non_null(text);
    memcpy(text, "{{", 2);
    for (size_t i = 0; i < count; i++) memcpy(text + 2 + i * size, unit, size);
    refused_bytes(text, size * count + 2, part);
    free(text);
}

static void test_nesting(void **state) {
    (void)state;
    refused_many("(", 200, "nested deeper than 100");
    refused_many("(", 100000, "more than 256 open brackets");
    refused_many("[", 200, "nested deeper than 100");
    refused_many("-", 100000, "nested deeper than 100");
    refused_many("not ", 100000, "nested deeper than 100");
    refused_many("1 if 1 else ", 60000, "nested deeper than 100");
    refused_many("1 + ", 100000, "more than 100 operators in a row");
    refused_many("1 and ", 100000, "more than 100 operators in a row");
    refused_many("1 ** ", 100000, "more than 100 operators in a row");
    refused_many("a.b.", 100000, "more than 100 accesses in a row");
    refused_many("1 }}{% if a %}{{ ", 300, "nested deeper than 100");
    refused_many(" ", (1 << 20) + 1, "more than 1048576 bytes");
}

static void test_names(void **state) {
    (void)state;
    enum { NAMES = 1001 };
    char *text = malloc(NAMES * 12 + 1), *at = text;
    for (int i = 0; i < NAMES; i++) at += sprintf(at, "{{ n%d }}", i);
    refused_bytes(text, (size_t)(at - text), "more than 1000 names");
    free(text);
}

/* What is long and harmless is no error. */
static void test_long(void **state) {
    (void)state;
    text_template_output out;
    sifr_error error = {0};
    enum { COUNT = 3000 };
    static const char first[] = "{% if 0 %}", more[] = "{% elif 0 %}a",
                      last[] = "{% else %}b{% endif %}";
    char *text = malloc(sizeof first + COUNT * sizeof more + sizeof last), *at = text;
    at = stpcpy(at, first);
    for (int i = 0; i < COUNT; i++) at = stpcpy(at, more);
    at = stpcpy(at, last);
    if (render(text, (size_t)(at - text), &out, &error) != SIFR_OK) fail_msg("%s", error.message);
    assert_string_equal(out.text, "b");
    text_template_output_free(&out);
    free(text);
    static const char loop[] = "{% for i in range(90000) %}{{ i ~ ',' }}{% endfor %}";
    if (render(loop, sizeof loop - 1, &out, &error) != SIFR_OK) fail_msg("%s", error.message);
    assert_int_equal(out.size, 90000 + 10 + 90 * 2 + 900 * 3 + 9000 * 4 + 80000 * 5);
    text_template_output_free(&out);
}

static void test_messages(void **state) {
    (void)state;
    static const char *const bad[] = {"[]", "{}", "[1]", "[{\"role\": \"user\"}, []]"};
    text_template *t;
    sifr_error error = {0};
    assert_int_equal(text_template_parse("{{ messages }}", 14, "x", &t, &error), SIFR_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *messages = json_loads(bad[i], 0, NULL);
        text_template_output out;
        text_template_input input = {.messages = messages};
        assert_int_equal(text_template_render(t, &input, &out, &error), SIFR_USAGE);
        assert_message(&error, "x: message");
        json_decref(messages);
    }
    text_template_free(t);
}

/* ---- the template of a folder ---- */

static void expect_text(const char *folder, bool tools, const char *text) {
    text_chat_template chat;
    text_template_output out;
    sifr_error error = {0};
    json_t *messages = json_loads(one_message, 0, NULL);
    text_template_input input = {.messages = messages};
    if (text_chat_template_load(folder, NULL, tools, &chat, &error) != SIFR_OK ||
        text_chat_template_render(&chat, &input, &out, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    assert_string_equal(out.text, text);
    text_template_output_free(&out);
    text_chat_template_free(&chat);
    json_decref(messages);
}

static void expect_refused(const char *folder, sifr_status status, const char *part) {
    text_chat_template chat;
    sifr_error error = {0};
    assert_int_equal(text_chat_template_load(folder, NULL, false, &chat, &error), status);
    assert_message(&error, part);
}

static void test_folder(void **state) {
    (void)state;
    char folder[BASE_PATH_LENGTH], more[BASE_PATH_LENGTH];
    strcpy(folder, scratch_path("model"));
    strcpy(more, scratch_path("model/additional_chat_templates"));
    assert_int_equal(base_make_directories(more, NULL), SIFR_OK);
    expect_refused(folder, SIFR_USAGE, "model has no chat template (chat_template.jinja, or");
    scratch_text("model/chat_template.json", "{\"chat_template\": \"json\"}");
    expect_text(folder, false, "json");
    scratch_text("model/tokenizer_config.json", "{\"chat_template\": null}");
    expect_text(folder, false, "json");
    scratch_text(
        "model/tokenizer_config.json",
        "{\"chat_template\": [{\"name\": \"default\", \"template\": \"d{{ bos_token }}\"}, "
        "{\"name\": \"tool_use\", \"template\": \"t{{ eos_token }}\"}], \"bos_token\": "
        "{\"content\": \"<s>\"}, \"eos_token\": \"</s>\"}");
    expect_text(folder, false, "d<s>");
    expect_text(folder, true, "t</s>");
    scratch_text("model/chat_template.jinja", "file {{ bos_token }}{{ unk_token }}");
    scratch_text("model/special_tokens_map.json", "{\"bos_token\": \"no\", \"unk_token\": \"?\"}");
    expect_text(folder, true, "file <s>?");
    scratch_text("model/additional_chat_templates/tool_use.jinja", "tools");
    expect_text(folder, false, "file <s>?");
    expect_text(folder, true, "tools");
}

static void test_bad_folder(void **state) {
    (void)state;
    char folder[BASE_PATH_LENGTH];
    static const char *const wrong[] = {"{\"chat_template\": 3}", "{\"chat_template\": [3]}",
                                        "{\"chat_template\": {\"default\": 3}}",
                                        "{\"chat_template\": [{\"name\": \"default\"}]}"};
    strcpy(folder, scratch_path("bad"));
    assert_int_equal(base_make_directories(folder, NULL), SIFR_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        scratch_text("bad/tokenizer_config.json", wrong[i]);
        expect_refused(folder, SIFR_USAGE, "tokenizer_config.json: \"chat_template\" must be");
    }
    scratch_text("bad/tokenizer_config.json", "{\"chat_template\": {\"rag\": \"x\"}}");
    expect_refused(folder, SIFR_USAGE, "none of its chat templates is called \"default\"");
    scratch_text("bad/tokenizer_config.json", "{");
    expect_refused(folder, SIFR_USAGE, "not valid JSON");
    scratch_text("bad/tokenizer_config.json", "{}");
    scratch_text("bad/chat_template.jinja", "\n{{ x");
    expect_refused(folder, SIFR_USAGE, "chat_template.jinja, line 2: ");
    scratch_text("bad/chat_template.jinja", "\xff");
    expect_refused(folder, SIFR_USAGE, "chat_template.jinja: the chat template is not valid UTF-8");
    assert_int_equal(unlink(scratch_path("bad/chat_template.jinja")), 0);
    scratch_text("outside", "{{ 1 }}");
    assert_int_equal(symlink("../outside", scratch_path("bad/chat_template.jinja")), 0);
    expect_refused(folder, SIFR_FAILED, "chat_template.jinja");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constructs), cmocka_unit_test(test_unfinished),
        cmocka_unit_test(test_bounds),     cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_names),      cmocka_unit_test(test_long),
        cmocka_unit_test(test_messages),   cmocka_unit_test(test_folder),
        cmocka_unit_test(test_bad_folder)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
