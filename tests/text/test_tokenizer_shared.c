/* Real vocabularies, which lie beside the project: the lists of ids that llama.cpp expects, and the
 * library's ids of whole texts. Skipped where ../shared is not there.
 * sanitizers in the soak alone: what is hostile has a test of its own */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/heap.h"
#include "support/tokenizer_case.h"
#include "text/tokenizer/tokenizer_internal.h"

static bool shared(char path[BASE_PATH_LENGTH], const char *name) {
    const char *source = getenv("SOURCE");
    snprintf(path, BASE_PATH_LENGTH, "%s/../shared/data/%s", source ? source : ".", name);
    return base_is_file(path) || base_is_directory(path);
}

static char *read_shared(const char *name, size_t *size) {
    char path[BASE_PATH_LENGTH], *text = NULL;
    if (!shared(path, name)) {
        print_message("%s is not there: skipped\n", path);
        skip();
    }
    assert_int_equal(base_read_file(path, 1 << 26, &text, size, NULL), SIFR_OK);
    return text;
}

static text_tokenizer *load_shared(const char *name) {
    char path[BASE_PATH_LENGTH];
    text_tokenizer *t = NULL;
    sifr_error error = {0};
    if (!shared(path, name)) {
        print_message("%s is not there: skipped\n", path);
        skip();
    }
    if (text_tokenizer_load(path, &t, &error) != SIFR_OK) fail_msg("%s", error.message);
    return t;
}

/* NAME.inp: texts between lines of a separator; NAME.out: a line of ids for each. */
static void like_llama_cpp(const text_tokenizer *t, const char *name) {
    static const char separator[] = "\n__ggml_vocab_test__\n";
    char file[64];
    size_t in_size, out_size, lists = 0;
    snprintf(file, sizeof file, "tok/ggml-expected/%s.inp", name);
    char *in = read_shared(file, &in_size);
    snprintf(file, sizeof file, "tok/ggml-expected/%s.out", name);
    char *out = read_shared(file, &out_size);
    text_tokenizer_scratch *s = NULL;
    text_tokenizer_ids ids = {0};
    assert_int_equal(text_tokenizer_scratch_new(t, &s, NULL), SIFR_OK);
    const char *line = out;
    for (const char *text = in; text; lists++) {
        const char *end = strstr(text, separator);
        size_t size = end ? (size_t)(end - text) : (size_t)(in + in_size - text);
        ids.count = 0;
        assert_int_equal(text_tokenizer_encode(t, s, text, size, false, &ids, NULL), SIFR_OK);
        for (size_t i = 0; i < ids.count; i++) {
            char *after;
            long want = strtol(line, &after, 10);
            if (after == line || want != ids.ids[i])
                fail_msg("%s, list %zu: id %zu is %d, not %ld", name, lists, i, ids.ids[i], want);
            line = after;
        }
        line += strspn(line, " ");
        assert_true(*line == '\n' || *line == 0);
        if (*line) line++;
        text = end ? end + sizeof separator - 1 : NULL;
    }
    assert_int_equal(line - out, out_size);
    print_message("%s: %zu lists of ids\n", name, lists);
    text_tokenizer_ids_free(&ids);
    text_tokenizer_scratch_free(s);
    free(in);
    free(out);
}

static void gpt2_lists(void **state) {
    (void)state;
    text_tokenizer *t = load_shared("tok/gpt2");
    like_llama_cpp(t, "gpt-2");
    assert_int_equal(text_tokenizer_eos(t), 50256);
    assert_int_equal(text_tokenizer_vocab_size(t), 50257);
    text_tokenizer_free(t);
}

/* "base64 rank" lines as a tokenizer.json: every way to put a token together from two others is a
 * merge with the token's rank; among these, the ranks of the parts decide. */
typedef struct join {
    size_t whole, left, right;
} join;

static int compare_joins(const void *a, const void *b) {
    const join *x = a, *y = b;
    if (x->whole != y->whole) return x->whole < y->whole ? -1 : 1;
    if (x->left != y->left) return x->left < y->left ? -1 : 1;
    return x->right < y->right ? -1 : x->right > y->right;
}

static size_t decode_base64(const char *text, size_t size, uint8_t *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t count = 0;
    uint32_t bits = 0;
    int have = 0;
    for (size_t i = 0; i < size && text[i] != '='; i++) {
        bits = bits << 6 | (uint32_t)(strchr(digits, text[i]) - digits);
        have += 6;
        if (have >= 8) out[count++] = (uint8_t)(bits >> (have -= 8));
    }
    return count;
}

static json_t *spell(const text_table *tokens, size_t id, text_tokenizer_text *text) {
    size_t size;
    const uint8_t *bytes = text_table_bytes(tokens, id, &size);
    text->count = 0;
    assert_int_equal(text_content_of_bytes(bytes, size, text, NULL), SIFR_OK);
    return json_stringn(text->bytes, text->count);
}

static char *convert_ranks(const char *ranks) {
    text_table tokens = {0};
    text_tokenizer_text text = {0};
    join *joins = NULL;
    size_t count = 0, capacity = 0, index, size;
    bool added;
    for (const char *line = ranks; *line;) {
        const char *blank = strchr(line, ' ');
        uint8_t bytes[512];
        assert_true(blank);
        assert_true(blank - line < 512);
        size = decode_base64(line, (size_t)(blank - line), bytes);
        assert_int_equal(text_table_add(&tokens, bytes, size, &index, &added, NULL), SIFR_OK);
        assert_int_equal(index, strtoul(blank, NULL, 10));
        line = strchr(line, '\n') + 1;
    }
    for (size_t whole = 0; whole < tokens.count; whole++) {
        const uint8_t *bytes = text_table_bytes(&tokens, whole, &size);
        for (size_t i = 1; i < size; i++) {
            size_t left = text_table_find(&tokens, bytes, i);
            size_t right = text_table_find(&tokens, bytes + i, size - i);
            if (left == SIZE_MAX || right == SIZE_MAX) continue;
            assert_int_equal(base_grow(&joins, &capacity, count + 1, sizeof *joins, NULL), SIFR_OK);
            joins[count++] = (join){whole, left, right};
        }
    }
    qsort(joins, count, sizeof *joins, compare_joins);
    json_t *vocabulary = json_object(), *merges = json_array();
    for (size_t id = 0; id < tokens.count; id++) {
        json_t *name = spell(&tokens, id, &text);
        json_object_set_new(vocabulary, json_string_value(name), json_integer((json_int_t)id));
        json_decref(name);
    }
    for (size_t i = 0; i < count; i++) {
        json_t *left = spell(&tokens, joins[i].left, &text);
        json_array_append_new(merges,
                              json_pack("[o, o]", left, spell(&tokens, joins[i].right, &text)));
    }
    json_t *root =
        json_pack("{s:{s:s, s:b, s:o, s:o}, s:{s:s, s:[{s:s, s:{s:s}, s:s}, {s:s, s:b, s:b}]}}",
                  "model", "type", "BPE", "ignore_merges", 1, "vocab", vocabulary, "merges", merges,
                  "pre_tokenizer", "type", "Sequence", "pretokenizers", "type", "Split", "pattern",
                  "Regex", text_split_pattern(TEXT_SPLIT_LLAMA3), "behavior", "Isolated", "type",
                  "ByteLevel", "add_prefix_space", 0, "use_regex", 0);
    assert_non_null(root);
    char *out = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    free(joins);
    text_table_free(&tokens);
    text_tokenizer_text_free(&text);
    return out;
}

static void llama3_lists(void **state) {
    (void)state;
    size_t size;
    char *ranks = read_shared("tok/llama3/tokenizer.model", &size);
    char *json = convert_ranks(ranks);
    text_tokenizer *t = NULL;
    sifr_error error = {0};
    if (text_tokenizer_parse(json, strlen(json), "llama3", &t, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    like_llama_cpp(t, "llama-bpe");
    text_tokenizer_free(t);
    free(json);
    free(ranks);
}

/* vocab.txt as BERT's uncased models have it around. */
static void bert_lists(void **state) {
    (void)state;
    size_t size;
    char *lines = read_shared("tok/bert/bert-vocab.txt", &size), *rest = lines, *line;
    json_t *vocabulary = json_object();
    for (json_int_t id = 0; (line = strsep(&rest, "\n")) && (*line || rest); id++)
        json_object_set_new(vocabulary, line, json_integer(id));
    json_t *root =
        json_pack("{s:{s:s, s:o}, s:{s:s}, s:{s:s}, s:{s:s}}", "model", "type", "WordPiece",
                  "vocab", vocabulary, "normalizer", "type", "BertNormalizer", "pre_tokenizer",
                  "type", "BertPreTokenizer", "decoder", "type", "WordPiece");
    text_tokenizer *t = NULL;
    sifr_error error = {0};
    if (text_tokenizer_from_json(root, "bert", &t, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    like_llama_cpp(t, "bert-bge");
    assert_int_equal(text_tokenizer_vocab_size(t), 30522);
    text_tokenizer_free(t);
    json_decref(root);
    free(lines);
}

static void texts_of(const char *golden, size_t at_least) {
    json_t *expected = tokenizer_golden(golden), *row;
    size_t i, size;
    assert_true(json_array_size(json_object_get(expected, "shared")) >= at_least);
    json_array_foreach(json_object_get(expected, "shared"), i, row) {
        char name[128];
        snprintf(name, sizeof name, "tok/%s", json_string_value(json_array_get(row, 0)));
        text_tokenizer *t = load_shared(name);
        snprintf(name, sizeof name, "text/%s", json_string_value(json_array_get(row, 1)));
        char *text = read_shared(name, &size);
        text_tokenizer_scratch *s = NULL;
        text_tokenizer_ids ids = {0};
        assert_int_equal(text_tokenizer_scratch_new(t, &s, NULL), SIFR_OK);
        assert_int_equal(text_tokenizer_encode(t, s, text, size, true, &ids, NULL), SIFR_OK);
        tokenizer_same(name, &ids, json_integer_value(json_array_get(row, 2)),
                       json_string_value(json_array_get(row, 3)));
        text_tokenizer_ids_free(&ids);
        text_tokenizer_scratch_free(s);
        text_tokenizer_free(t);
        free(text);
    }
    json_decref(expected);
}

static void whole_texts(void **state) {
    (void)state;
    char path[BASE_PATH_LENGTH];
    if (!shared(path, "tok")) { /* before anything is taken, so that nothing leaks */
        print_message("%s is not there: skipped\n", path);
        skip();
    }
    texts_of("expected.json", 8);
    texts_of("kinds.json", 8);
}

static void phi3_lists(void **state) {
    (void)state;
    text_tokenizer *t = load_shared("tok/phi3-mini");
    like_llama_cpp(t, "phi-3");
    like_llama_cpp(t, "llama-spm");
    assert_int_equal(text_tokenizer_id(t, "\xE2\x96\x81the"), 278);
    text_tokenizer_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(gpt2_lists), cmocka_unit_test(llama3_lists),
                                       cmocka_unit_test(whole_texts), cmocka_unit_test(phi3_lists),
                                       cmocka_unit_test(bert_lists)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
