/* Which tokens are the assistant's, of conversations of several turns, with thoughts, tools and
 * lists of parts, by the chat templates that models are released with and by TRL 1.16's training
 * forms of them (tests/golden/make_turns.py, judged by transformers and TRL). Takes under 2 s. */
#include "data/golden_rows_case.h"

#include "data/chat/chat_check.h"
#include "data/records/records.h"

/* A new reference. */
static json_t *load_template(const char *name) {
    json_t *text = NULL, *row;
    data_records *records;
    sifr_error error = {0};
    if (data_records_open_rows(from_source("tests/golden/turns/templates.jsonl.gz"), &records,
                               &error) != SIFR_OK)
        fail_msg("%s", error.message);
    while (!text) {
        if (data_records_next(records, &row, &error) != SIFR_OK) fail_msg("%s", error.message);
        assert_non_null(row);
        if (strcmp(word(row, "name"), name) == 0) text = json_incref(json_object_get(row, "text"));
        json_decref(row);
    }
    data_records_close(records);
    return text;
}

static data_chat *open_rows(const char *template, sifr_error *error) {
    data_chat *chat;
    data_chat_source source = {.path = scratch_path("rows.jsonl"), .weight = 1};
    data_chat_options options = {.sources = &source,
                                 .count = 1,
                                 .tokenizer = scratch,
                                 .template = template,
                                 .vocab_size = 4096,
                                 .length = 8192,
                                 .separator = -1,
                                 .whole = true,
                                 .skip_bad_rows = true,
                                 .threads = 1};
    return data_chat_open(&options, &chat, error) == SIFR_OK ? chat : NULL;
}

/* The sequence of a row, counted from 1; -1: it is left out. */
static int64_t find_row(const data_chat *chat, int64_t row) {
    const char *file;
    for (int64_t i = 0; chat && i < data_chat_count(chat)->rows; i++)
        if (data_chat_place(chat, i, &file) == row) return i;
    return -1;
}

static int64_t check_case(const json_t *golden, const json_t *wanted) {
    const char *form = word(wanted, "form");
    sifr_error error = {0};
    const json_t *sequence;
    size_t i;
    int64_t bad = 0;
    json_t *text = load_template(form);
    put_tokenizer(json_object_get(golden, "tokenizer"));
    put_rows(json_object_get(golden, "rows"));
    data_chat *chat = open_rows(json_string_value(text), &error);
    json_array_foreach(json_object_get(wanted, "sequences"), i, sequence) {
        int64_t at = find_row(chat, (int64_t)i + 1);
        bool there = !json_is_null(sequence);
        bool same = there ? at >= 0 && same_sequence(sequence, chat, at, "TRL") : at < 0;
        if (!same)
            print_message("%s, conversation %zu %s\n", form, i + 1,
                          at < 0  ? "is left out"
                          : there ? "differs"
                                  : "is not refused");
        bad += !same;
    }
    data_chat_close(chat);
    json_decref(text);
    return bad;
}

static void learns_turns(void **state) {
    (void)state;
    check_cases("tests/golden/turns/cases.json", "trl", 60, check_case);
}

/* --- lists of parts --- */

static uint64_t hash_of(const json_t *golden, const char *template, const char *rows) {
    sifr_error error = {0};
    put_tokenizer(json_object_get(golden, "tokenizer"));
    scratch_text("rows.jsonl", rows);
    data_chat *chat = open_rows(template, &error);
    if (!chat || data_chat_count(chat)->rows != 1) fail_msg("%s", error.message);
    uint64_t hash = data_chat_hash(chat);
    data_chat_close(chat);
    return hash;
}

/* A part's text may be its "value"; a template that takes lists for one role gets none for others,
 * and one that takes none their text. */
static void gives_lists(void **state) {
    (void)state;
    static const char takes[] =
        "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% elif m.role == "
        "'user' %}{% for p in m.content %}<{{ p.text | trim }}>{% endfor %}{% endif %}{% endfor %}";
    static const char plain[] = "{% for m in messages %}{{ m.content }}{% endfor %}";
    static const char row[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"value\": \" "
        "a \"}, {\"type\": \"text\", \"text\": \" b\"}]}, {\"role\": \"assistant\", "
        "\"content\": [{\"type\": \"text\", \"text\": \"c\"}, {\"type\": \"text\", "
        "\"text\": \" d\"}]}]}";
    json_t *golden = load("tests/golden/turns/cases.json");
    uint64_t listed = hash_of(golden, plain,
                              "{\"messages\": [{\"role\": \"user\", \"content\": \"<a><b>\"}, "
                              "{\"role\": \"assistant\", \"content\": \"c d\"}]}");
    uint64_t joined = hash_of(golden, plain,
                              "{\"messages\": [{\"role\": \"user\", \"content\": \" a  b\"}, "
                              "{\"role\": \"assistant\", \"content\": \"c d\"}]}");
    assert_true(hash_of(golden, takes, row) == listed);
    assert_true(hash_of(golden, plain, row) == joined);
    assert_true(listed != joined);
    json_decref(golden);
}

/* A system prompt in a field and the same one as parts of the first turn is one. */
static void compares_lists(void **state) {
    (void)state;
    json_t *row = json_pack("{s:s}", "system", "ab");
    json_t *messages = json_pack("[{s:s, s:[{s:s, s:s}, {s:s, s:s}]}]", "role", "system", "content",
                                 "type", "text", "text", "a", "type", "text", "text", "b");
    assert_false(data_chat_replaces_system(row, messages));
    json_object_set_new(row, "system", json_string("abc"));
    assert_true(data_chat_replaces_system(row, messages));
    json_object_set_new(row, "system", json_string("a"));
    assert_true(data_chat_replaces_system(row, messages));
    json_decref(row);
    json_decref(messages);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gives_lists, scratch_setup, scratch_teardown),
        cmocka_unit_test(compares_lists),
        cmocka_unit_test_setup_teardown(learns_turns, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
