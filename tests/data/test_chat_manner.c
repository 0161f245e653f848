/* Turns in the one rendering: what a template's manner is, what is taken as the turn, and rows
 * whose turns cannot be told. Takes no time. */
#include "base/json.h"
#include "data/chat/chat_render.h"
#include "support/scratch.h"

static const char talk[] =
    "{\"messages\": [{\"role\": \"user\", \"content\": \"Q\"}, {\"role\": \"assistant\", "
    "\"content\": \"A\", \"reasoning_content\": \"T\"}, {\"role\": \"user\", \"content\": \"R\"}, "
    "{\"role\": \"assistant\", \"content\": \"B\", \"reasoning_content\": \"U\"}]}";

static data_chat_templates load(const char *template) {
    data_chat_templates templates;
    sifr_error error = {0};
    if (data_chat_templates_load(scratch, template, &templates, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    return templates;
}

/* The learned parts of a row, each in brackets, or the message. */
static void assert_turns(const char *template, const char *row, data_chat_mask mask,
                         const char *expected) {
    const data_row_place place = {.file = "rows", .row = 1};
    data_chat_templates templates = load(template);
    data_conversation talked;
    data_chat_text text = {0};
    sifr_error error = {0};
    json_t *json = NULL;
    char found[1024] = "";
    size_t used = 0;
    assert_int_equal(base_json_parse(row, strlen(row), "row", &json, NULL), SIFR_OK);
    assert_int_equal(data_conversation_read(json, data_form_of(DATA_ROW_MESSAGES), NULL, true,
                                            &place, &talked, NULL),
                     SIFR_OK);
    sifr_status status = data_chat_render(&templates, mask, false, &talked, &place, &text, &error);
    for (size_t i = 0; status == SIFR_OK && i < text.span_count; i++)
        used += (size_t)snprintf(found + used, sizeof found - used, "[%.*s]",
                                 (int)(text.spans[i].end - text.spans[i].begin),
                                 text.text + text.spans[i].begin);
    if (status != SIFR_OK) snprintf(found, sizeof found, "%s", error.message);
    if (!strstr(found, expected) || (status == SIFR_OK && strcmp(found, expected) != 0))
        fail_msg("%s\nnot\n%s", found, expected);
    data_chat_text_free(&text);
    data_conversation_free(&talked);
    data_chat_templates_free(&templates);
    json_decref(json);
}

/* Thoughts of the last turn alone, as in Qwen3.5's. */
#define THINKS(cue, prompt)                                                                        \
    "{% for m in messages %}{% if m.role == 'assistant' %}" cue                                    \
    "{% if loop.last %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}<end>"    \
    "{% else %}<user>{{ m.content }}<end>{% endif %}{% endfor %}{% if add_generation_prompt "      \
    "%}" prompt "{% endif %}"

static void takes_what_the_loop_writes(void **state) {
    (void)state;
    assert_turns(THINKS("<bot>", "<bot>"), talk, DATA_ON_ASSISTANT,
                 "[A<end>][<think>U</think>B<end>]");
    assert_turns(THINKS("<bot>", "<bot><think>"), talk, DATA_ON_ASSISTANT,
                 "[A<end>][<think>U</think>B<end>]");
    assert_turns(THINKS("<bot>", "<bot><think>"), talk, DATA_ON_LAST, "[<think>U</think>B<end>]");
    assert_turns(THINKS("<｜Assistant｜>", "<｜Assistant｜>"), talk, DATA_ON_ASSISTANT,
                 "[<｜Assistant｜>A<end>][<｜Assistant｜><think>U</think>B<end>]");
    /* A template that asks for a turn whatever is asked for: that is none of the last turn. */
    assert_turns("{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}<assistant>",
                 talk, DATA_ON_ASSISTANT, "[A<end>][B<end>]");
}

static void knows_manners(void **state) {
    (void)state;
    data_chat_templates plain = load("{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>"
                                     "{% endfor %}{% if add_generation_prompt %}<assistant>"
                                     "{% endif %}");
    assert_true(plain.manners[0].known && !plain.manners[0].anew && !plain.manners[0].open);
    assert_string_equal(plain.manners[0].cue, "<assistant>");
    data_chat_templates_free(&plain);
    data_chat_templates open = load("{% for m in messages %}<{{ m.role }}>{{ m.content }}"
                                    "{% endfor %}{% if add_generation_prompt %}<assistant>"
                                    "{% endif %}");
    assert_true(open.manners[0].known && open.manners[0].open);
    data_chat_templates_free(&open);
    data_chat_templates thinks = load(THINKS("<bot>", "<bot><think>"));
    assert_true(thinks.manners[0].known && thinks.manners[0].anew);
    assert_string_equal(thinks.manners[0].cue, "<bot>");
    data_chat_templates_free(&thinks);
    /* The prompt is no beginning of a turn. */
    data_chat_templates other = load(THINKS("<bot>", "<assistant>"));
    assert_true(!other.manners[0].known && other.manners[0].anew);
    data_chat_templates_free(&other);
}

static void refuses_what_cannot_be_told(void **state) {
    (void)state;
    static const char apart[] = "cannot be told apart";
    assert_turns(THINKS("<bot>", "<assistant>"), talk, DATA_ON_ASSISTANT, apart);
    /* An answer may hold the next question. */
    assert_turns("{{ messages | length }}{% for m in messages %}{% if m.role == 'assistant' %}"
                 "{{ m.content }}{% if loop.nextitem %}{{ loop.nextitem.content }}{% endif %}"
                 "{% endif %}{% endfor %}",
                 talk, DATA_ON_ASSISTANT, apart);
    /* A turn that is not written. */
    assert_turns("{{ messages | length }}{% for m in messages %}{% if m.role == 'user' or loop.last"
                 " %}{{ m.content }};{% endif %}{% endfor %}",
                 talk, DATA_ON_ASSISTANT, apart);
    /* Results of tools in the assistant's own message. */
    assert_turns(THINKS("<bot>", "<bot>"),
                 "{\"messages\": [{\"role\": \"user\", \"content\": \"Q\"}, {\"role\": "
                 "\"assistant\", \"content\": \"A\", \"reasoning_content\": \"T\", "
                 "\"tool_responses\": [1]}, {\"role\": \"user\", \"content\": \"R\"}, {\"role\": "
                 "\"assistant\", \"content\": \"B\", \"reasoning_content\": \"U\"}]}",
                 DATA_ON_ASSISTANT, apart);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(takes_what_the_loop_writes, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(knows_manners, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(refuses_what_cannot_be_told, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
