/* Rows of messages as axolotl's own chat_template strategy learns them (0.19.0,
 * tests/golden/make_axolotl.py): whose turns, and which ends of turns, by the keys of its sets; and
 * what is refused of these keys. Published templates lie beside the project. */
#include "data/golden_rows_case.h"

static const json_t *of(const json_t *wanted, const char *key) {
    return json_object_get(wanted, key);
}

static data_chat_ends ends_of(const json_t *wanted, const char *key, data_chat_ends usual) {
    static const char *const names[] = {"turn", "all", "last", "none"};
    const char *name = word(wanted, key);
    for (int i = 0; name && i < 4; i++)
        if (strcmp(name, names[i]) == 0) return (data_chat_ends)i;
    return usual;
}

/* As a config gives the keys of a case. */
static data_chat_turns turns_of(const json_t *wanted) {
    data_chat_ends eos = ends_of(wanted, "train_on_eos", DATA_ENDS_TURN);
    return (data_chat_turns){.asked = true,
                             .roles = of(wanted, "roles_to_train"),
                             .every = json_is_true(of(wanted, "train_on_inputs")),
                             .eos = eos,
                             .eot = ends_of(wanted, "train_on_eot", eos)};
}

static sifr_status open_rows(const json_t *wanted, data_chat **chat, sifr_error *error) {
    data_chat_source source = {
        .path = scratch_path("rows.jsonl"), .weight = 1, .turns = turns_of(wanted)};
    data_chat_options options = {.sources = &source,
                                 .count = 1,
                                 .tokenizer = scratch,
                                 .vocab_size = 1024,
                                 .length = 2048,
                                 .separator = 2,
                                 .mask = DATA_ON_ASSISTANT,
                                 .eot_tokens = of(wanted, "eot_tokens"),
                                 .special = true,
                                 .threads = 1};
    return data_chat_open(&options, chat, error);
}

static void name_case(const json_t *wanted) {
    json_t *named = json_copy((json_t *)(uintptr_t)wanted);
    json_object_del(named, "sequences");
    char *text = json_dumps(named, JSON_COMPACT);
    print_message("%s\n", text);
    free(text);
    json_decref(named);
}

/* How many sequences come out otherwise. */
static int64_t check_case(const json_t *golden, const json_t *wanted) {
    const json_t *sequences = of(wanted, "sequences");
    sifr_error error = {0};
    data_chat *chat = NULL;
    int64_t bad = 0, count = (int64_t)json_array_size(sequences);
    put_tokenizer(of(of(golden, "tokenizers"), word(wanted, "tokenizer")));
    put_rows(json_array_get(of(golden, "sets"), (size_t)json_integer_value(of(wanted, "rows"))));
    if (open_rows(wanted, &chat, &error) != SIFR_OK) print_message("%s\n", error.message);
    int64_t rows = chat ? data_chat_count(chat)->rows : 0;
    for (int64_t i = 0; i < count; i++)
        bad +=
            i >= rows || !same_sequence(json_array_get(sequences, (size_t)i), chat, i, "axolotl");
    if (bad || rows != count) name_case(wanted);
    data_chat_close(chat);
    return bad + (rows > count ? rows - count : 0);
}

static void learns_what_axolotl_learns(void **state) {
    (void)state;
    check_cases("tests/golden/axolotl/cases.json", "axolotl", 100, check_case);
}

/* --- what is refused, and said --- */

static char said[2048];

static void keep_line(void *user, sifr_log_level level, const char *line) {
    (void)user, (void)level;
    snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", line);
}

/* Opens these rows by a golden tokenizer and template; the error, or what was said. */
static const char *opened(const char *template, const char *row, const char *keys) {
    static sifr_error error;
    static const sifr_log log = {keep_line, NULL};
    json_t *golden = load("tests/golden/axolotl/cases.json"), *wanted = json_loads(keys, 0, NULL);
    json_object_set_new(wanted, "template", json_string(template));
    put_tokenizer(of(of(golden, "tokenizers"), "byte_named"));
    assert_true(put_template(golden, wanted));
    scratch_write("rows.jsonl", row, strlen(row));
    data_chat_source source = {
        .path = scratch_path("rows.jsonl"), .weight = 1, .turns = turns_of(wanted)};
    data_chat_options options = {.sources = &source,
                                 .count = 1,
                                 .tokenizer = scratch,
                                 .vocab_size = 1024,
                                 .length = 512,
                                 .separator = 2,
                                 .eot_tokens = of(wanted, "eot_tokens"),
                                 .threads = 1,
                                 .log = &log};
    data_chat *chat = NULL;
    error = (sifr_error){0};
    said[0] = '\0';
    sifr_status status = data_chat_open(&options, &chat, &error);
    data_chat_close(chat);
    json_decref(wanted);
    json_decref(golden);
    return status == SIFR_OK ? said : error.message;
}

static void says(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("no \"%s\" in: %s", part, text);
}

#define ASKED "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, "
#define ANSWER "{\"role\": \"assistant\", \"content\": \"b\"}"

static void refuses_what_cannot_be(void **state) {
    (void)state;
    says(opened("moves", ASKED "{\"role\": \"developer\", \"content\": \"told\"}, " ANSWER "]}",
                "{\"roles_to_train\": [\"developer\"]}"),
         "row 1, line 1: the chat template does not write message 2, of the role \"developer\" "
         "whose turns are to be learned (roles_to_train)");
    says(opened("chatml_bare", ASKED ANSWER "]}", "{\"eot_tokens\": [\"<|im_end|> \"]}"),
         "eot_tokens: \"<|im_end|> \" is 2 tokens of the tokenizer");
    says(opened("chatml_bare", ASKED ANSWER "]}",
                "{\"eot_tokens\": [\"<|im_end|>\", \"</s>\"], \"train_on_eot\": \"all\"}"),
         "train_on_eot: the end-of-text token is one of eot_tokens");
    says(opened("chatml_bare",
                "{\"prompt\": [{\"role\": \"user\", \"content\": \"a\"}], \"completion\": [" ANSWER
                "]}",
                "{}"),
         "roles_to_train and the ends of turns are of rows of messages");
    says(opened("chatml_bare",
                "{\"prompt\": [{\"role\": \"user\", \"content\": \"a\"}], \"chosen\": [" ANSWER
                "], \"rejected\": [" ANSWER "]}",
                "{}"),
         "roles_to_train and the ends of turns are of rows of messages");
}

/* The template's turns end with <|im_end|>, and the tokenizer's text with </s>. */
static void says_that_no_end_is_learned(void **state) {
    (void)state;
    static const char row[] = ASKED ANSWER "]}";
    static const char line[] = "data: no end of a turn is learned";
    says(opened("chatml_bare", row, "{}"), line);
    assert_null(strstr(opened("chatml_bare", row, "{\"eot_tokens\": [\"<|im_end|>\"]}"), line));
    assert_null(strstr(opened("chatml_bare", row, "{\"train_on_eos\": \"none\"}"), line));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(learns_what_axolotl_learns, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(refuses_what_cannot_be, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(says_that_no_end_is_learned, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
