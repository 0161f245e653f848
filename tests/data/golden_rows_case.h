/* Rows that another program encoded, stored with their tokenizers and templates (tests/golden/
 * make_trl.py): ids and labels beside sifr's. Included by one test file each. */
#ifndef TRAIN_GOLDEN_ROWS_CASE_H
#define TRAIN_GOLDEN_ROWS_CASE_H

#include "support/scratch.h"

#include "base/json.h"
#include "data/chat/chat_rows.h"

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

static bool same_sequence(const json_t *wanted, const data_chat *chat, int64_t index,
                          const char *whose) {
    const int32_t *ids;
    const bool *learned;
    int64_t whole, count = data_chat_row_at(chat, index, &ids, &learned, &whole);
    bool same = same_ids(wanted, ids, count);
    for (int64_t i = 0; same && i < count; i++) same = learned[i] == is_label(wanted, i);
    if (same) return true;
    char *text = json_dumps(wanted, JSON_COMPACT);
    print_message("  sequence %lld: %s has %s; here %lld tokens, ids and labels:", (long long)index,
                  whose, text, (long long)count);
    for (int64_t i = 0; i < count && i < 60; i++)
        print_message(" %d%s", ids[i], learned[i] ? "*" : "");
    print_message("\n");
    free(text);
    return false;
}

/* --- all cases of a file --- */

/* `key` names the library in "versions". check_case returns the sequences that differ. */
static void check_cases(const char *path, const char *key, int64_t least,
                        int64_t (*check_case)(const json_t *golden, const json_t *wanted)) {
    json_t *golden = load(path), *wanted;
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
    print_message("%lld sequences of %lld cases as %s %s makes them; %lld published templates' "
                  "cases are not there\n",
                  (long long)(all - bad), (long long)cases, key,
                  word(json_object_get(golden, "versions"), key), (long long)absent);
    json_decref(golden);
    assert_true(cases > least);
    if (bad) fail_msg("%lld of %lld sequences come out otherwise", (long long)bad, (long long)all);
}

#endif
