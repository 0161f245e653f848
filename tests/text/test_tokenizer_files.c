/* Folders without tokenizer.json: what becomes of them is what transformers makes of them, by a
 * hash of the whole tokenizer.json and by its small parts. Cases in tests/golden/tokenizer_files/.
 * Real vocabularies are skipped where ../shared is not there.
 * sanitizers in the soak alone: what is hostile has a test of its own */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "formats/folder.h"
#include "support/tokenizer_case.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_files.h"

static void take(uint64_t *hash, const void *bytes, size_t size) {
    const uint8_t *p = bytes;
    for (size_t i = 0; i < size; i++) *hash = (*hash ^ p[i]) * 0x100000001b3u;
}

static void take_text(uint64_t *hash, const char *text, size_t size) {
    take(hash, "\"", 1);
    take(hash, text, size);
    take(hash, "\"", 1);
}

static int compare_keys(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* As canonical of make_tokenizer_files.py spells the value. */
static void take_value(uint64_t *hash, const json_t *value) {
    char text[64];
    const char *key, **keys;
    json_t *item;
    size_t i, count = 0;
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        keys = calloc(json_object_size(value) + 1, sizeof *keys);
        json_object_foreach((json_t *)(uintptr_t)value, key, item) keys[count++] = key;
        qsort(keys, count, sizeof *keys, compare_keys);
        take(hash, "{", 1);
        for (i = 0; i < count; i++) {
            take_text(hash, keys[i], strlen(keys[i]));
            take_value(hash, json_object_get(value, keys[i]));
        }
        take(hash, "}", 1);
        free(keys);
        break;
    case JSON_ARRAY:
        take(hash, "[", 1);
        json_array_foreach(value, i, item) take_value(hash, item);
        take(hash, "]", 1);
        break;
    case JSON_STRING:
        take_text(hash, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        snprintf(text, sizeof text, "i%lld;", (long long)json_integer_value(value));
        take(hash, text, strlen(text));
        break;
    case JSON_REAL: {
        float number = (float)json_real_value(value);
        const uint8_t *bytes = (const uint8_t *)&number;
        take(hash, "r", 1);
        for (i = 0; i < sizeof number; i++) {
            snprintf(text, sizeof text, "%02x", bytes[i]);
            take(hash, text, 2);
        }
        take(hash, ";", 1);
        break;
    }
    default:
        take(hash, json_is_true(value) ? "t" : json_is_false(value) ? "f" : "n", 1);
    }
}

static void source_of(char out[BASE_PATH_LENGTH], const char *below, const char *name) {
    const char *source = getenv("SOURCE");
    snprintf(out, BASE_PATH_LENGTH, "%s/%s/%s", source ? source : ".", below, name);
}

/* The folder that the case describes, or false where a file is not there. */
static bool make_folder(const json_t *row, const char *from, const char *folder) {
    char source[BASE_PATH_LENGTH], target[BASE_PATH_LENGTH], absolute[BASE_PATH_LENGTH];
    const char *name;
    json_t *value;
    assert_int_equal(base_remove_tree(folder, NULL), SIFR_OK);
    assert_int_equal(base_make_directories(folder, NULL), SIFR_OK);
    json_object_foreach(json_object_get(row, "files"), name, value) {
        source_of(source, from, json_string_value(value));
        if (!base_is_file(source)) return false;
        assert_int_equal(base_path_join(target, folder, name, NULL), SIFR_OK);
        assert_non_null(realpath(source, absolute));
        assert_int_equal(symlink(absolute, target), 0);
    }
    json_object_foreach(json_object_get(row, "texts"), name, value) {
        assert_int_equal(base_path_join(target, folder, name, NULL), SIFR_OK);
        FILE *file = fopen(target, "w");
        assert_non_null(file);
        fputs(json_string_value(value), file);
        fclose(file);
    }
    return true;
}

/* A part of the golden description against ours, where vocabulary and merges are counts and of the
 * added tokens only the first are there. */
static void compare_parts(const char *name, const json_t *want, const json_t *got) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)want, key, value) {
        json_t *mine = json_object_get(got, key);
        if (json_is_integer(value) && !json_is_integer(mine) && mine) {
            size_t count = json_is_object(mine)  ? json_object_size(mine)
                           : json_is_array(mine) ? json_array_size(mine)
                                                 : json_string_length(mine);
            if ((json_int_t)count != json_integer_value(value))
                fail_msg("%s: %s has %zu entries, not %lld", name, key, count,
                         (long long)json_integer_value(value));
            continue;
        }
        if (!strcmp(key, "added_tokens")) {
            for (size_t i = 0; i < json_array_size(value); i++) {
                if (json_equal(json_array_get(value, i), json_array_get(mine, i))) continue;
                char *a = json_dumps(json_array_get(value, i), JSON_ENCODE_ANY);
                char *b = json_dumps(json_array_get(mine, i), JSON_ENCODE_ANY);
                fail_msg("%s: added token %zu is %s, not %s", name, i, b ? b : "absent", a);
            }
        } else if (json_is_object(value) && json_is_object(mine)) {
            compare_parts(name, value, mine);
        } else if (!json_equal(value, mine) && strcmp(key, "normalizers")) {
            char *a = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
            char *b = mine ? json_dumps(mine, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
            fail_msg("%s: %s is %s, not %s", name, key, b ? b : "absent", a);
        }
    }
}

/* False where its vocabulary is not there. */
static bool check_case(const json_t *row, const char *from) {
    char folder[64], path[BASE_PATH_LENGTH], hash[17], *eos = NULL;
    const char *name = json_string_value(json_object_get(row, "name"));
    json_t *root = NULL;
    sifr_error error = {0};
    snprintf(folder, sizeof folder, "tokenizer_files_%d", (int)getpid());
    if (!make_folder(row, from, folder)) {
        print_message("%s: its vocabulary is not there: skipped\n", name);
        return false;
    }
    if (text_tokenizer_convert(folder, &root, path, &eos, &error) != SIFR_OK)
        fail_msg("%s: %s", name, error.message);
    const char *end = json_string_value(json_object_get(row, "eos"));
    if (end || eos) assert_string_equal(end ? end : "none", eos ? eos : "none");
    free(eos);
    const json_t *want = json_object_get(row, "hash");
    if (!want) return json_decref(root), true; /* sentencepiece judges */
    if (json_object_get(row, "rest")) compare_parts(name, json_object_get(row, "rest"), root);
    uint64_t code = 0xcbf29ce484222325u;
    take_value(&code, root);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)code);
    if (strcmp(hash, json_string_value(want)) != 0)
        fail_msg("%s: the whole of it differs: %s", name, hash);
    json_decref(root);
    assert_int_equal(base_remove_tree(folder, NULL), SIFR_OK);
    return true;
}

/* The ids of all[key], special tokens included where transformers judges. False where the
 * vocabulary is not there. */
static bool check_ids(const json_t *row, const json_t *all, const char *from, const char *key) {
    const json_t *lines = json_object_get(all, key);
    const json_t *wanted = json_object_get(row, strcmp(key, "hurt") ? "ids" : "hurt");
    bool special = json_object_get(row, "hash") != NULL;
    if (!wanted) return true;
    char folder[64], what[128];
    const char *name = json_string_value(json_object_get(row, "name"));
    text_tokenizer *t = NULL;
    text_tokenizer_scratch *s = NULL;
    text_tokenizer_ids ids = {0};
    sifr_error error = {0};
    snprintf(folder, sizeof folder, "tokenizer_files_%d", (int)getpid());
    if (!make_folder(row, from, folder)) {
        print_message("%s: its vocabulary is not there: skipped\n", name);
        return false;
    }
    if (text_tokenizer_load(folder, &t, &error) != SIFR_OK) fail_msg("%s: %s", name, error.message);
    assert_int_equal(text_tokenizer_scratch_new(t, &s, NULL), SIFR_OK);
    for (size_t i = 0; i < json_array_size(lines); i++) {
        const json_t *line = json_array_get(lines, i);
        const json_t *want = json_array_get(wanted, i);
        if (json_is_null(want)) continue;
        ids.count = 0;
        if (text_tokenizer_encode(t, s, json_string_value(line), json_string_length(line), special,
                                  &ids, &error) != SIFR_OK)
            fail_msg("%s, line %zu: %s", name, i, error.message);
        snprintf(what, sizeof what, "%s, %s %zu", name, key, i);
        tokenizer_same(what, &ids, json_integer_value(json_array_get(want, 0)),
                       json_string_value(json_array_get(want, 1)));
    }
    const char *end = json_string_value(json_object_get(row, "eos"));
    if (end) assert_int_equal(text_tokenizer_eos(t), text_tokenizer_id(t, end));
    text_tokenizer_ids_free(&ids);
    text_tokenizer_scratch_free(s);
    text_tokenizer_free(t);
    return true;
}

static json_t *cases(void) {
    char path[BASE_PATH_LENGTH];
    json_t *value = NULL;
    sifr_error error = {0};
    source_of(path, "tests/golden/tokenizer_files", "cases.json");
    if (base_json_load(path, 1 << 24, &value, &error) != SIFR_OK) fail_msg("%s", error.message);
    return value;
}

static void like_transformers(void **state) {
    (void)state;
    json_t *all = cases(), *row;
    size_t i;
    assert_true(json_array_size(json_object_get(all, "cases")) >= 40);
    json_array_foreach(json_object_get(all, "cases"), i, row)
        assert_true(check_case(row, "tests/golden/tokenizer_files"));
    json_decref(all);
}

static void real_vocabularies(void **state) {
    (void)state;
    json_t *all = cases(), *row;
    size_t i;
    bool there = true;
    json_array_foreach(json_object_get(all, "shared"), i, row) there &=
        check_case(row, "../shared/data/tok");
    json_decref(all);
    if (!there) skip();
}

static void same_ids(void **state) {
    (void)state;
    json_t *all = cases(), *row;
    size_t i;
    json_array_foreach(json_object_get(all, "cases"), i, row) {
        assert_true(check_ids(row, all, "tests/golden/tokenizer_files", "lines"));
        assert_true(check_ids(row, all, "tests/golden/tokenizer_files", "hurt"));
    }
    json_decref(all);
}

static void real_ids(void **state) {
    (void)state;
    json_t *all = cases(), *row;
    size_t i;
    bool there = true;
    json_array_foreach(json_object_get(all, "shared"), i, row) there &=
        check_ids(row, all, "../shared/data/tok", "lines") &&
        check_ids(row, all, "../shared/data/tok", "hurt");
    json_decref(all);
    if (!there) skip();
}

/* A file beside the project; NULL where it is not there. */
static char *read_shared(const char *name) {
    char path[BASE_PATH_LENGTH], *text = NULL;
    size_t size;
    source_of(path, "../shared/data/tok", name);
    if (base_read_file(path, 1 << 26, &text, &size, NULL) != SIFR_OK) return NULL;
    return text;
}

/* NAME.inp: texts between lines of a separator; NAME.out: a line of ids for each, as llama.cpp
 * gives them for the vocabulary. */
static size_t same_lists(const text_tokenizer *t, const char *in, const char *out,
                         const char *name) {
    static const char separator[] = "\n__ggml_vocab_test__\n";
    text_tokenizer_scratch *s = NULL;
    text_tokenizer_ids ids = {0};
    size_t lists = 0;
    assert_int_equal(text_tokenizer_scratch_new(t, &s, NULL), SIFR_OK);
    for (const char *text = in; text; lists++) {
        const char *end = strstr(text, separator);
        size_t size = end ? (size_t)(end - text) : strlen(text);
        ids.count = 0;
        assert_int_equal(text_tokenizer_encode(t, s, text, size, false, &ids, NULL), SIFR_OK);
        for (size_t i = 0; i < ids.count; i++) {
            char *after;
            long want = strtol(out, &after, 10);
            if (after == out || want != ids.ids[i])
                fail_msg("%s, list %zu: id %zu is %d, not %ld", name, lists, i, ids.ids[i], want);
            out = after;
        }
        out += strspn(out, " ");
        assert_true(*out == '\n' || *out == 0);
        if (*out) out++;
        text = end ? end + sizeof separator - 1 : NULL;
    }
    text_tokenizer_ids_free(&ids);
    text_tokenizer_scratch_free(s);
    return lists;
}

/* Of the others, llama.cpp goes by sentencepiece, from which transformers' class of Llama differs
 * where a text begins with a blank. */
static void like_llama_cpp(void **state) {
    (void)state;
    char folder[64], *in = read_shared("ggml-expected/llama-bpe.inp");
    char *out = read_shared("ggml-expected/llama-bpe.out");
    json_t *row =
        json_pack("{s:{s:s}, s:{s:s}}", "files", "tokenizer.model", "llama3/tokenizer.model",
                  "texts", "config.json", "{\"model_type\": \"llama\"}");
    snprintf(folder, sizeof folder, "tokenizer_files_%d", (int)getpid());
    bool there = in && out && make_folder(row, "../shared/data/tok", folder);
    if (there) {
        text_tokenizer *t = NULL;
        assert_int_equal(text_tokenizer_load(folder, &t, NULL), SIFR_OK);
        assert_true(same_lists(t, in, out, "llama-bpe") > 40);
        text_tokenizer_free(t);
        assert_int_equal(base_remove_tree(folder, NULL), SIFR_OK);
    }
    json_decref(row);
    free(in);
    free(out);
    if (!there) {
        print_message("the vocabulary of Llama 3 is not there: skipped\n");
        skip();
    }
}

/* A folder that is carried along keeps the files that its tokenizer is made from. */
static void carried(void **state) {
    (void)state;
    static const char *const names[] = {
        "tokenizer.model", "spiece.model", "spm.model",  "sentencepiece.bpe.model",
        "vocab.txt",       "vocab.json",   "merges.txt", "added_tokens.json"};
    char path[BASE_PATH_LENGTH];
    sifr_error error = {0};
    assert_int_equal(base_make_directories("carry_from", NULL), SIFR_OK);
    assert_int_equal(base_make_directories("carry_to", NULL), SIFR_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(base_path_join(path, "carry_from", names[i], NULL), SIFR_OK);
        assert_int_equal(base_write_file(path, "x", 1, NULL), SIFR_OK);
    }
    if (formats_folder_carry("carry_from", "carry_to", NULL, NULL, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(base_path_join(path, "carry_to", names[i], NULL), SIFR_OK);
        assert_true(base_is_file(path));
    }
    assert_int_equal(base_remove_tree("carry_from", NULL), SIFR_OK);
    assert_int_equal(base_remove_tree("carry_to", NULL), SIFR_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(like_transformers), cmocka_unit_test(real_vocabularies),
        cmocka_unit_test(same_ids),          cmocka_unit_test(real_ids),
        cmocka_unit_test(like_llama_cpp),    cmocka_unit_test(carried)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
