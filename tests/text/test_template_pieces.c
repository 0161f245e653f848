/* Which message each part of a rendering is written for (template_owner.c). Takes no time. */
#include "base/json.h"
#include "support/scratch.h"
#include "text/chat_template.h"

static const char talk[] =
    "[{\"role\": \"user\", \"content\": \"Q\"}, {\"role\": \"assistant\", \"content\": \"A\", "
    "\"calls\": [\"f\", \"g\"]}, {\"role\": \"tool\", \"content\": \"R\"}, {\"role\": "
    "\"assistant\", \"content\": \"B\"}]";

/* Renders the talk and describes its pieces as "0:text|1:text|…", with "mixed" behind. */
static void assert_pieces(const char *text, const char *expected) {
    text_template *t;
    text_template_output out;
    json_t *messages = NULL;
    sifr_error error = {0};
    char found[512] = "";
    size_t used = 0;
    assert_int_equal(text_template_parse(text, strlen(text), "x.jinja", &t, &error), SIFR_OK);
    assert_int_equal(base_json_parse(talk, sizeof talk - 1, "m", &messages, NULL), SIFR_OK);
    text_template_input input = {.messages = messages};
    if (text_template_render(t, &input, &out, &error) != SIFR_OK) fail_msg("%s", error.message);
    for (size_t i = 0; i < out.piece_count; i++) {
        text_template_piece p = out.pieces[i];
        assert_true(p.begin < p.end && p.end <= out.size);
        used += (size_t)snprintf(found + used, sizeof found - used, "%s%zu:%.*s", i ? "|" : "",
                                 p.message, (int)(p.end - p.begin), out.text + p.begin);
    }
    snprintf(found + used, sizeof found - used, "%s", out.mixed ? " mixed" : "");
    assert_string_equal(found, expected);
    text_template_output_free(&out);
    json_decref(messages);
    text_template_free(t);
}

static void has_what_a_loop_writes(void **state) {
    (void)state;
    assert_pieces("<{% for m in messages %}[{{ m.content }}]{% endfor %}>",
                  "0:[Q]|1:[A]|2:[R]|3:[B]");
    assert_pieces("{% for m in messages[1:] if m.role != 'tool' %}{{ m.content }},{% endfor %}",
                  "1:A,|3:B,");
    /* Loops over something else belong to the message around them. */
    assert_pieces("{% for m in messages %}{% for c in m.calls or [] %}{{ c }}{% endfor %}"
                  "{{ m.content }}{% endfor %}",
                  "0:Q|1:fgA|2:R|3:B");
    assert_pieces("{% for m in messages %}{{ m.content }}{% if loop.index == 2 %}{% break %}"
                  "{% endif %}{% endfor %}end",
                  "0:Q|1:A");
    /* Macros write for the message of the loop that calls them. */
    assert_pieces("{% macro say(m) %}({% for x in messages %}{% endfor %}{{ m.content }})"
                  "{% endmacro %}{% for m in messages %}{{ say(m) }}{% endfor %}",
                  "0:(Q)|1:(A)|2:(R)|3:(B)");
}

static void parts_results_within_turns(void **state) {
    (void)state;
    assert_pieces("{% for m in messages %}{% if m.role != 'tool' %}{{ m.content }}"
                  "{% for k in range(loop.index, messages | length) %}"
                  "{% if messages[k].role == 'tool' and m.calls %}{% set r = messages[k].content %}"
                  "<{{ r }}>{% endif %}{% endfor %};{% endif %}{% endfor %}",
                  "0:Q;|1:A|2:<R>|1:;|3:B;");
    assert_pieces("{% for m in messages %}{{ m.content }}{% if m.calls %}"
                  "{% for x in messages if x.role == 'tool' %}<{{ x.content }}>{% endfor %}."
                  "{% endif %}{% endfor %}",
                  "0:Q|1:A|2:<R>|1:.|2:R|3:B");
}

static void says_what_cannot_be_seen(void **state) {
    (void)state;
    assert_pieces("{% for m in messages %}{% if m.role == 'assistant' %}{{ messages[2].content }}"
                  "{{ m.content }}{% endif %}{% endfor %}",
                  "1:RA|3:RB mixed");
    assert_pieces("{% macro all(m) %}{% for x in messages %}{{ x.content }}{% endfor %}"
                  "{% endmacro %}{% for m in messages %}{% if m.role == 'assistant' %}{{ all(m) }}"
                  "{% endif %}{% endfor %}",
                  "1:QARB|3:QARB mixed");
    /* What is captured outside of a loop is no message's. */
    assert_pieces("{% set text %}{% for m in messages %}{{ m.content }}{% endfor %}{% endset %}"
                  "{{ text }}",
                  "");
    assert_pieces("{{ messages | map(attribute='content') | join }}", "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_what_a_loop_writes),
        cmocka_unit_test(parts_results_within_turns),
        cmocka_unit_test(says_what_cannot_be_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
