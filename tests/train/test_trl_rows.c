/* Rows as TRL 1.16's own trainers prepare and collate them (tests/golden/make_trl.py): SFT, DPO and
 * ORPO; texts that merge with their prompts, answers of several turns, templates that write the
 * prompt otherwise, cuts at each border, special tokens that are typed. Published templates lie
 * beside the project.
 * in test_asan */
#include "support/scratch.h"

#include "base/json.h"
#include "train/data/chat/chat_rows.h"

static const char *from_source(const char *path) {
    static char out[BASE_PATH_LENGTH];
    const char *source = getenv("SOURCE");
    snprintf(out, sizeof out, "%s/%s", source ? source : ".", path);
    return out;
}

static json_t *load(const char *path) {
    json_t *json;
    sifr_error error = {0};
    if (base_json_load(from_source(path), 1 << 26, &json, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    return json;
}

static const char *word(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

/* Not flushed to the disk, as base_json_save does: there are hundreds of files. */
static void save(const char *name, const json_t *json) {
    assert_int_equal(json_dump_file(json, scratch_path(name), JSON_COMPACT), 0);
}

static void put_tokenizer(const json_t *described) {
    char path[BASE_PATH_LENGTH];
    snprintf(path, sizeof path, "tests/golden/finetune/%s", word(described, "file"));
    json_t *tokenizer = load(path);
    json_object_set(tokenizer, "post_processor", json_object_get(described, "post_processor"));
    save("tokenizer.json", tokenizer);
    save("tokenizer_config.json", json_object_get(described, "config"));
    json_decref(tokenizer);
}

/* False where a published template is not there. */
static bool put_template(const json_t *golden, const json_t *wanted) {
    const char *name = word(wanted, "template");
    if (base_remove_tree(scratch_path("chat_template.jinja"), NULL) != SIFR_OK) fail();
    if (!name) return true;
    if (json_object_get(wanted, "published")) {
        char path[BASE_PATH_LENGTH];
        snprintf(path, sizeof path, "../shared/data/chat_templates/%s.jinja", name);
        if (!base_is_file(from_source(path))) return false;
        return base_copy_file(from_source(path), scratch_path("chat_template.jinja"), NULL) ==
               SIFR_OK;
    }
    const json_t *text = json_object_get(json_object_get(golden, "templates"), name);
    scratch_write("chat_template.jinja", json_string_value(text), json_string_length(text));
    return true;
}

static void put_rows(const json_t *rows) {
    FILE *file = fopen(scratch_path("rows.jsonl"), "w");
    size_t i;
    json_t *row;
    assert_non_null(file);
    json_array_foreach((json_t *)(uintptr_t)rows, i, row) {
        json_dumpf(row, file, JSON_COMPACT);
        fputc('\n', file);
    }
    fclose(file);
}

static train_chat_mask mask_of(const json_t *wanted) {
    static const char *const names[] = {[TRAIN_ON_ASSISTANT] = "assistant",
                                        [TRAIN_ON_LAST] = "last",
                                        [TRAIN_ON_ALL] = "all",
                                        [TRAIN_ON_COMPLETION] = "completion",
                                        [TRAIN_ON_ASSISTANT_ONLY] = "assistant_only",
                                        [TRAIN_ON_ASSISTANT_TURNS] = "assistant_turns"};
    size_t mask = 0;
    while (strcmp(names[mask], word(wanted, "train_on")) != 0)
        if (++mask == sizeof names / sizeof *names) fail_msg("%s", word(wanted, "train_on"));
    return (train_chat_mask)mask;
}

static train_chat *open_case(const json_t *wanted, sifr_error *error) {
    train_chat *chat;
    train_chat_source source = {.path = scratch_path("rows.jsonl"), .weight = 1};
    train_chat_options options = {
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
    return train_chat_open(&options, &chat, error) == SIFR_OK ? chat : NULL;
}

/* --- a sequence: [tokens, hash of the ids, tokens without a label, with one, without …] --- */

static bool same_ids(const json_t *wanted, const int32_t *ids, int64_t count) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    char hex[20];
    const uint8_t *bytes = (const uint8_t *)ids;
    for (int64_t i = 0; i < count * 4; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)hash);
    return json_integer_value(json_array_get(wanted, 0)) == count &&
           strcmp(hex, json_string_value(json_array_get(wanted, 1))) == 0;
}

static bool is_label(const json_t *wanted, int64_t at) {
    int64_t end = 0;
    size_t run = 2;
    for (; run < json_array_size(wanted); run++) {
        end += json_integer_value(json_array_get(wanted, run));
        if (at < end) break;
    }
    return run % 2 == 1;
}

static bool same_sequence(const json_t *wanted, const train_chat *chat, int64_t index) {
    const int32_t *ids;
    const bool *learned;
    int64_t whole, count = train_chat_row_at(chat, index, &ids, &learned, &whole);
    bool same = same_ids(wanted, ids, count);
    for (int64_t i = 0; same && i < count; i++) same = learned[i] == is_label(wanted, i);
    if (same) return true;
    char *text = json_dumps(wanted, JSON_COMPACT);
    print_message("  sequence %lld: TRL has %s; here %lld tokens, ids and labels:",
                  (long long)index, text, (long long)count);
    for (int64_t i = 0; i < count && i < 60; i++)
        print_message(" %d%s", ids[i], learned[i] ? "*" : "");
    print_message("\n");
    free(text);
    return false;
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
    train_chat *chat = open_case(wanted, &error);
    int64_t rows = chat ? train_chat_count(chat)->rows : 0;
    for (int64_t i = 0; i < count; i++)
        bad += i >= rows || !same_sequence(json_array_get(sequences, (size_t)i), chat, i);
    if (bad || rows != count)
        print_message("%s, tokenizer %s, template %s, max_length %lld: %lld of %lld sequences "
                      "differ, %lld are here%s%s\n",
                      word(wanted, "trainer"), kind,
                      word(wanted, "template") ? word(wanted, "template") : "none",
                      json_integer_value(json_object_get(wanted, "max_length")), (long long)bad,
                      (long long)count, (long long)rows, chat ? "" : ": ", error.message);
    train_chat_close(chat);
    return bad + (rows > count ? rows - count : 0);
}

static void makes_what_trl_makes(void **state) {
    (void)state;
    json_t *golden = load("tests/golden/trl/cases.json"), *wanted;
    int64_t bad = 0, all = 0, cases = 0, absent = 0;
    size_t i;
    json_array_foreach(json_object_get(golden, "cases"), i, wanted) {
        if (!put_template(golden, wanted)) {
            absent++;
            continue;
        }
        bad += check_case(golden, wanted);
        all += (int64_t)json_array_size(json_object_get(wanted, "sequences"));
        cases++;
    }
    print_message("%lld sequences of %lld cases as TRL %s makes them; %lld published templates' "
                  "cases are not there\n",
                  (long long)(all - bad), (long long)cases,
                  word(json_object_get(golden, "versions"), "trl"), (long long)absent);
    json_decref(golden);
    assert_true(cases > 60);
    if (bad) fail_msg("%lld of %lld sequences come out otherwise", (long long)bad, (long long)all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(makes_what_trl_makes, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
