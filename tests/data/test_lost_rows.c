/* What rows hold and their chat template does not write: calls of tools, thoughts, lists of tools.
 */
#include "data/finetune_case.h"

#define TURNS(call)                                                                                \
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}" call                  \
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
#define CALLS "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}"
#define TOOLS "{% for t in tools or [] %}<tool>{{ t | tojson }}</tool>{% endfor %}"

static const char blind[] = TURNS(""), listing[] = TOOLS TURNS(""), whole[] = TOOLS TURNS(CALLS);

#define USER "{\"role\": \"user\", \"content\": \"a\"}"
#define CALL                                                                                       \
    "\"tool_calls\": [{\"type\": \"function\", \"function\": {\"name\": \"find\", "                \
    "\"arguments\": {}}}]"
#define SAID(content, more) "{\"role\": \"assistant\", \"content\": " content more "}"
#define TOOL "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"find\"}}]"
#define ROW(messages, more) "{\"messages\": [" messages "]" more "}\n"

static data_chat_options options_of(const char *template, const char *rows,
                                    data_chat_source *source, data_chat_mask mask) {
    set_template(template);
    *source = source_of(scratch_text("x.jsonl", rows));
    data_chat_options options = options_for(source, 1);
    options.length = 512;
    options.mask = mask;
    return options;
}

static sifr_status open_text(const char *template, const char *rows, data_chat_mask mask,
                             data_chat **out, sifr_error *error) {
    data_chat_source source;
    data_chat_options options = options_of(template, rows, &source, mask);
    said[0] = 0;
    return data_chat_open(&options, out, error);
}

static int64_t tokens_of(const char *template, const char *rows) {
    data_chat_source source;
    data_chat_options options = options_of(template, rows, &source, DATA_ON_ASSISTANT);
    data_chat *chat = open_rows(&options);
    int64_t tokens = data_chat_count(chat)->tokens;
    data_chat_close(chat);
    return tokens;
}

static int lines_with(const char *words) {
    int count = 0;
    for (const char *at = said; (at = strstr(at, words)) != NULL; at++) count++;
    return count;
}

/* An empty answer is not learned for a call that is not in the text. */
static void refuses_empty_answers(void **state) {
    (void)state;
    static const char *const rows[] = {
        ROW(USER ", " SAID("\"\"", ", " CALL), ""),
        ROW(USER ", " SAID("null", ", " CALL), ", " TOOL),
        ROW(USER ", " SAID("\" \\n\"", ", " CALL) ", " USER ", " SAID("\"b\"", ""), ""),
        ROW(USER ", " SAID("\"\"", ", \"function_call\": {\"name\": \"find\", \"arguments\": "
                                   "\"{}\"}"),
            ""),
        ROW(USER ", " SAID("\"\"", ", \"reasoning_content\": \"so\""), ""),
        /* ShareGPT's turns that call */
        "{\"conversations\": [{\"from\": \"human\", \"value\": \"find it\"}, {\"from\": "
        "\"function_call\", \"value\": \"{\\\"name\\\": \\\"find\\\", \\\"arguments\\\": "
        "{}}\"}]}\n"};
    static const char *const members[] = {"tool_calls",    "tool_calls",        "tool_calls",
                                          "function_call", "reasoning_content", "tool_calls"};
    char wanted[200];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        data_chat *chat;
        sifr_error error = {0};
        /* The list of tools has the name of the function that is called. */
        const char *template = i == 1 ? listing : blind;
        assert_int_equal(open_text(template, rows[i], DATA_ON_ASSISTANT, &chat, &error),
                         SIFR_FAILED);
        snprintf(wanted, sizeof wanted,
                 "x.jsonl: row 1, line 1: message 2 of the assistant has nothing but '%s', which "
                 "the chat template does not write, so an empty answer would be learned",
                 members[i]);
        if (!strstr(error.message, wanted)) fail_msg("%s", error.message);
        if (i < 4) (void)tokens_of(whole, i == 3 ? rows[0] : rows[i]);
        assert_int_equal(lines_with("does not write"), 0);
    }
}

/* What leaves an answer, or is none, is said once a file. */
static void says_what_is_lost(void **state) {
    (void)state;
    static const char both[] =
        ROW(USER ", " SAID("\"b\"", ", " CALL), "") ROW(USER ", " SAID("\"b\"", ", " CALL), "");
    int64_t with = tokens_of(whole, both);
    assert_int_equal(lines_with("does not write"), 0);
    assert_true(tokens_of(blind, both) < with);
    assert_int_equal(lines_with("x.jsonl: the chat template does not write 'tool_calls' of the "
                                "assistant's messages, which is not learned\n"),
                     1);
    (void)tokens_of(blind, ROW(USER ", " SAID("\"b\"", ""), ", " TOOL)
                               ROW(USER ", " SAID("\"c\"", ""), ", " TOOL));
    assert_int_equal(lines_with("x.jsonl: rows have tools, which the chat template does not "
                                "write\n"),
                     1);
    (void)tokens_of(listing, ROW(USER ", " SAID("\"b\"", ""), ", " TOOL));
    assert_int_equal(lines_with("does not write"), 0);
    /* Thoughts, of the last turn alone; turns that are not learned may be empty. */
    (void)tokens_of(blind, ROW(USER ", " SAID("\"b\"", ", \"thinking\": \"so\""), ""));
    assert_int_equal(lines_with("does not write 'thinking'"), 1);
    (void)tokens_of(blind,
                    ROW(USER ", " SAID("\"b\"", ", \"thinking\": \"so\"") ", " USER
                                                                          ", " SAID("\"b\"", ""),
                        ""));
    assert_int_equal(lines_with("does not write"), 0);
    (void)tokens_of(blind,
                    ROW(USER ", " SAID("\"\"", ", \"train\": false, " CALL) ", " USER
                                                                            ", " SAID("\"b\"", ""),
                        ""));
    assert_int_equal(lines_with("does not write 'tool_calls'"), 1);
    (void)tokens_of(blind,
                    "{\"prompt\": [" USER
                    ", " SAID("\"\"", ", " CALL) ", " USER "], "
                                                 "\"completion\": [" SAID("\"b\"", "") "]}\n");
    assert_int_equal(lines_with("does not write 'tool_calls'"), 1);
    /* A text has no place for tools. */
    (void)tokens_of(whole, "{\"prompt\": \"a\", \"completion\": \"b\", " TOOL "}\n");
    assert_int_equal(lines_with("field not read: tools\n"), 1);
    (void)tokens_of(whole,
                    "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\", " TOOL "}\n");
    assert_int_equal(lines_with("field not read: tools\n"), 1);
}

/* Tools that the system's turn holds, and the template writes again. */
static void says_tools_twice(void **state) {
    (void)state;
#define SYSTEM(text) "{\"role\": \"system\", \"content\": \"" text "\"}, "
    static const char row[] =
        ROW(SYSTEM("<tools> [{'name': 'find'}] </tools>") USER ", " SAID("\"b\"", ""), ", " TOOL);
    (void)tokens_of(listing, row);
    assert_int_equal(lines_with("data: in 1 row the system's turn has the tools that the chat "
                                "template writes once more; give --ignore-fields tools to leave "
                                "those out\n"),
                     1);
    (void)tokens_of(blind, row);
    assert_int_equal(lines_with("once more"), 0);
    (void)tokens_of(listing,
                    ROW(SYSTEM("You find things.") USER ", " SAID("\"b\"", ""), ", " TOOL));
    assert_int_equal(lines_with("once more"), 0);
}

/* A turn that is not learned under train_on last may be empty. */
static void last_alone(void **state) {
    (void)state;
    data_chat *chat;
    sifr_error error = {0};
    static const char rows[] =
        ROW(USER ", " SAID("\"\"", ", " CALL) ", " USER ", " SAID("\"b\"", ""), "");
    assert_int_equal(open_text(blind, rows, DATA_ON_LAST, &chat, &error), SIFR_OK);
    data_chat_close(chat);
    assert_int_equal(lines_with("does not write 'tool_calls'"), 1);
    assert_int_equal(open_text(blind, rows, DATA_ON_ALL, &chat, &error), SIFR_FAILED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_empty_answers), cmocka_unit_test(says_what_is_lost),
        cmocka_unit_test(says_tools_twice), cmocka_unit_test(last_alone)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
