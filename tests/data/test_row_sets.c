/* Rows of public sets, as row_sets.json has them: for each the form that is found, what is asked,
 * what is answered, the fields that are named as not read, and why a set is refused. The rows were
 * written anew; their fields are those of the sets. */
#include "support/scratch.h"

#include "base/json.h"
#include "data/chat/chat_fields.h"

enum { LEAST_SETS = 30 };

static const data_row_place place = {.file = "set", .row = 1, .line = 1};

static json_t *load_sets(void) {
    char path[BASE_PATH_LENGTH];
    const char *source = getenv("SOURCE");
    json_t *sets;
    sifr_error error = {0};
    snprintf(path, sizeof path, "%s/tests/data/row_sets.json", source ? source : ".");
    sets = json_load_file(path, 0, NULL);
    if (!sets) fail_msg("%s: cannot be read%s", path, error.message);
    return sets;
}

/* "user: Why?"; of a turn that calls functions, the calls. */
static json_t *turn_text(const json_t *message) {
    const json_t *calls = json_object_get(message, "tool_calls");
    const char *role = json_string_value(json_object_get(message, "role"));
    char *dumped = calls ? json_dumps(calls, 0) : NULL;
    const char *content = json_string_value(json_object_get(message, "content"));
    json_t *text = json_sprintf("%s: %s", role, dumped ? dumped : content);
    free(dumped);
    return text;
}

/* {"prompt", "answer", "tools"}. */
static json_t *describe(const data_conversation *c) {
    json_t *prompt = json_array(), *answer, *out;
    size_t count = json_array_size(c->messages);
    for (size_t i = 0; i + 1 < count; i++)
        json_array_append_new(prompt, turn_text(json_array_get(c->messages, i)));
    if (count) {
        answer = turn_text(json_array_get(c->messages, count - 1));
    } else {
        json_decref(prompt);
        prompt = json_stringn(c->prompt, c->prompt_size);
        answer = json_stringn(c->text, c->text_size);
    }
    out = json_pack("{s:o, s:o}", "prompt", prompt, "answer", answer);
    if (json_array_size(c->tools)) json_object_set(out, "tools", c->tools);
    return out;
}

static sifr_status read_one(const json_t *row, const data_form *form, json_t **out,
                            sifr_error *error) {
    data_conversation c;
    BASE_TRY(data_conversation_read(row, form, NULL, true, &place, &c, error));
    *out = describe(&c);
    data_conversation_free(&c);
    return SIFR_OK;
}

static sifr_status read_row(const json_t *row, const data_form *form, json_t **out,
                            sifr_error *error) {
    json_t *sides[2], *read[2] = {NULL, NULL};
    const data_form *side = data_form_of(DATA_ROW_PROMPT_COMPLETION);
    if (form->type != DATA_ROW_PREFERENCE) return read_one(row, form, out, error);
    BASE_TRY(data_preference_read(row, form, true, &place, sides, error));
    for (int i = 0; i < 2; i++)
        assert_int_equal(read_one(sides[i], side, &read[i], error), SIFR_OK);
    json_object_set(read[0], "rejected", json_object_get(read[1], "answer"));
    assert_true(json_equal(json_object_get(read[0], "prompt"), json_object_get(read[1], "prompt")));
    json_decref(sides[0]);
    json_decref(sides[1]);
    json_decref(read[1]);
    *out = read[0];
    return SIFR_OK;
}

/* The set's own words, where those of the row differ. */
static void compare(const char *set, const char *what, const json_t *found,
                    const json_t *expected) {
    if (found == expected || json_equal(found, expected)) return;
    char *is = found ? json_dumps(found, JSON_ENCODE_ANY) : NULL;
    char *should = expected ? json_dumps(expected, JSON_ENCODE_ANY) : NULL;
    fail_msg("%s: %s is %s, not %s", set, what, is ? is : "none", should ? should : "none");
}

static void check_set(const json_t *entry) {
    static const char *const parts[] = {"prompt", "answer", "rejected", "tools"};
    const char *set = json_string_value(json_object_get(entry, "set"));
    const char *refused = json_string_value(json_object_get(entry, "refused"));
    json_t *row = json_object_get(entry, "row"), *read = NULL;
    const data_form *form = NULL;
    data_chat_fields fields = {0};
    sifr_error error = {0};
    sifr_status status = data_row_form_find(row, DATA_ROW_TYPES, &place, &form, &error);
    if (status == SIFR_OK) status = read_row(row, form, &read, &error);
    assert_true(json_string_length(json_object_get(entry, "why")) || !refused);
    assert_string_equal(form->name, json_string_value(json_object_get(entry, "form")));
    if ((status == SIFR_FAILED) != (refused != NULL))
        fail_msg("%s: %s", set, refused ? "is not refused" : error.message);
    if (refused) {
        assert_message(&error, refused);
        return;
    }
    assert_int_equal(data_chat_fields_note(&fields, form, row, &error), SIFR_OK);
    compare(set, "what is listed", fields.unread, json_object_get(entry, "listed"));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        compare(set, parts[i], json_object_get(read, parts[i]), json_object_get(entry, parts[i]));
    json_decref(read);
    data_chat_fields_free(&fields);
}

static void reads_public_sets(void **state) {
    (void)state;
    json_t *sets = load_sets(), *entry;
    size_t i;
    json_array_foreach(sets, i, entry) check_set(entry);
    assert_true(json_array_size(sets) >= LEAST_SETS);
    json_decref(sets);
}

static void refuse(const char *row_text, const char *message) {
    json_t *row, *read = NULL;
    const data_form *form;
    sifr_error error = {0};
    assert_int_equal(base_json_parse(row_text, strlen(row_text), "", &row, &error), SIFR_OK);
    sifr_status status = data_row_form_find(row, DATA_ROW_TYPES, &place, &form, &error);
    if (status == SIFR_OK) status = read_row(row, form, &read, &error);
    if (status != SIFR_FAILED) fail_msg("%s is read", row_text);
    assert_message(&error, message);
    json_decref(row);
}

static void accept(const char *row_text) {
    json_t *row, *read = NULL;
    const data_form *form;
    sifr_error error = {0};
    assert_int_equal(base_json_parse(row_text, strlen(row_text), "", &row, &error), SIFR_OK);
    sifr_status status = data_row_form_find(row, DATA_ROW_TYPES, &place, &form, &error);
    if (status == SIFR_OK) status = read_row(row, form, &read, &error);
    if (status != SIFR_OK) fail_msg("%s: %s", row_text, error.message);
    json_decref(read);
    json_decref(row);
}

/* Each field that a form must not lose, beside a row of it: an error where it holds text, unless it
 * is read, and unless its text is known. */
static void loses_no_text(void **state) {
    (void)state;
    static const char turns[] = "[{\"role\": \"user\", \"content\": \"q\"}]";
    char row[512], message[128];
    static const char *const beside_prompt[] = {
        "system", "system_prompt", "input", "instruction", "question", "context", "history"};
    for (size_t i = 0; i < sizeof beside_prompt / sizeof *beside_prompt; i++) {
        snprintf(row, sizeof row,
                 "{\"prompt\": \"ask\", \"completion\": \"say\", \"%s\": \"other\"}",
                 beside_prompt[i]);
        snprintf(message, sizeof message, "'%s' holds text that rows of the form prompt_completion",
                 beside_prompt[i]);
        refuse(row, message);
    }
    refuse("{\"prompt\": \"ask\", \"chosen\": \"a\", \"rejected\": \"b\", \"context\": \"other\"}",
           "'context' holds text that rows of the form preference_prompt do not read");
    refuse("{\"instruction\": \"a\", \"output\": \"b\", \"input\": \"c\", \"context\": \"d\"}",
           "'context' holds text that rows of the form alpaca do not read");
    refuse("{\"instruction\": \"a\", \"question\": \"b\", \"answer\": \"c\"}",
           "'instruction' holds text that rows of the form question_answer do not read");
    snprintf(row, sizeof row, "{\"messages\": %s, \"functions\": [{\"name\": \"f\"}]}", turns);
    refuse(row, "'functions' holds text that rows of the form messages do not read");
    snprintf(row, sizeof row, "{\"messages\": %s, \"system\": \"x\", \"system_prompt\": \"y\"}",
             turns);
    refuse(row, "'system_prompt' holds text that rows of the form messages do not read");
    /* No text, and text that is known. */
    accept("{\"prompt\": \"ask\", \"completion\": \"say\", \"system\": null, \"context\": \" \"}");
    accept("{\"prompt\": \"ask me\", \"completion\": \"say\", \"question\": \"ask me\"}");
    accept("{\"prompt\": \"ask me\", \"completion\": \"say\", \"question\": \" ask\\n\"}");
    accept("{\"prompt\": \"ask\", \"completion\": \"say\", \"context\": \"<ask> then <say>\"}");
    accept("{\"prompt\": \"ask\", \"completion\": \"say\", \"history\": [[\"as\", \"say\"]]}");
    /* A context that has the answer in it is not what the row says. */
    refuse("{\"prompt\": \"ask\", \"completion\": \"1874\", \"context\": \"It opened in 1874.\"}",
           "'context' holds text");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_public_sets),
        cmocka_unit_test(loses_no_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
