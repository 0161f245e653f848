/* Rows as TRL 1.16's own trainers prepare and collate them (tests/golden/make_trl.py): SFT, DPO and
 * ORPO; texts that merge with their prompts, answers of several turns, templates that write the
 * prompt otherwise, cuts at each border, special tokens that are typed. Published templates lie
 * beside the project. */
#include "data/golden_rows_case.h"

static data_chat_mask mask_of(const json_t *wanted) {
    static const char *const names[] = {[DATA_ON_ASSISTANT] = "assistant",
                                        [DATA_ON_LAST] = "last",
                                        [DATA_ON_ALL] = "all",
                                        [DATA_ON_COMPLETION] = "completion",
                                        [DATA_ON_ASSISTANT_ONLY] = "assistant_only",
                                        [DATA_ON_ASSISTANT_TURNS] = "assistant_turns"};
    size_t mask = 0;
    while (strcmp(names[mask], word(wanted, "train_on")) != 0)
        if (++mask == sizeof names / sizeof *names) fail_msg("%s", word(wanted, "train_on"));
    return (data_chat_mask)mask;
}

static data_chat *open_case(const json_t *wanted, sifr_error *error) {
    data_chat *chat;
    data_chat_source source = {.path = scratch_path("rows.jsonl"), .weight = 1};
    data_chat_options options = {
        .sources = &source,
        .count = 1,
        .tokenizer = scratch,
        .vocab_size = 1024,
        .length = json_integer_value(json_object_get(wanted, "max_length")),
        .separator = 2, /* config.json's may be another: the tokenizer's ends a text */
        .mask = mask_of(wanted),
        .special = true,
        .odds = strcmp(word(wanted, "trainer"), "orpo") == 0,
        .threads = 1};
    return data_chat_open(&options, &chat, error) == SIFR_OK ? chat : NULL;
}

/* How many sequences come out otherwise. */
static int64_t check_case(const json_t *golden, const json_t *wanted) {
    const json_t *sequences = json_object_get(wanted, "sequences");
    const char *kind = word(wanted, "tokenizer");
    sifr_error error = {0};
    int64_t bad = 0, count = (int64_t)json_array_size(sequences);
    put_tokenizer(json_object_get(json_object_get(golden, "tokenizers"), kind));
    put_rows(json_array_get(json_object_get(golden, "sets"),
                            (size_t)json_integer_value(json_object_get(wanted, "rows"))));
    data_chat *chat = open_case(wanted, &error);
    int64_t rows = chat ? data_chat_count(chat)->rows : 0;
    for (int64_t i = 0; i < count; i++)
        bad += i >= rows || !same_sequence(json_array_get(sequences, (size_t)i), chat, i, "TRL");
    if (bad || rows != count)
        print_message("%s, tokenizer %s, template %s, max_length %lld: %lld of %lld sequences "
                      "differ, %lld are here%s%s\n",
                      word(wanted, "trainer"), kind,
                      word(wanted, "template") ? word(wanted, "template") : "none",
                      json_integer_value(json_object_get(wanted, "max_length")), (long long)bad,
                      (long long)count, (long long)rows, chat ? "" : ": ", error.message);
    data_chat_close(chat);
    return bad + (rows > count ? rows - count : 0);
}

static void makes_what_trl_makes(void **state) {
    (void)state;
    check_cases("tests/golden/trl/cases.json", "trl", 60, check_case);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(makes_what_trl_makes, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
