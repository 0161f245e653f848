/* Every kind of tokenizer, as tests/golden/make_tokenizer_kinds.py made them: the library's ids and
 * texts of a corpus of many scripts, pairs of texts, cuts, and decoding token by token.
 * sanitizers in the soak alone: what is hostile has a test of its own */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/tokenizer_case.h"
#include "text/tokenizer/tokenizer_internal.h"

static json_t *golden;
static char *corpus;
static size_t corpus_size, chunk;

static text_tokenizer *build(const char *name, const json_t *row) {
    json_t *root = json_deep_copy(row);
    const char *model = json_string_value(json_object_get(row, "model"));
    json_t *whole = json_deep_copy(json_object_get(json_object_get(golden, "models"), model));
    text_tokenizer *t = NULL;
    sifr_error error = {0};
    json_object_update(whole, json_object_get(row, "change"));
    json_object_set_new(root, "model", whole);
    if (text_tokenizer_from_json(root, name, &t, &error) != SIFR_OK) fail_msg("%s", error.message);
    json_decref(root);
    return t;
}

static void encode(const char *name, const text_tokenizer *t, text_tokenizer_scratch *s,
                   const char *text, size_t size, bool special, text_tokenizer_ids *out) {
    sifr_error error = {0};
    char *copy = malloc(size + 1); /* so that a sanitizer sees a read behind the end */
    assert_non_null(copy);
    memcpy(copy, text, size);
    copy = realloc(copy, size ? size : 1);
    if (text_tokenizer_encode(t, s, copy, size, special, out, &error) != SIFR_OK)
        fail_msg("%s: %s", name, error.message);
    free(copy);
}

static uint64_t hash_bytes(const char *bytes, size_t size) {
    uint64_t value = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) value = (value ^ (uint8_t)bytes[i]) * 0x100000001b3u;
    return value;
}

/* Eight digits of the hash, as the chunk's place in `all` has them. */
static void same(const char *name, const char *what, size_t i, uint64_t hash, const char *all) {
    char mine[17];
    snprintf(mine, sizeof mine, "%016llx", (unsigned long long)hash);
    if (strncmp(mine, all + 8 * i, 8) != 0) fail_msg("%s: other %s of chunk %zu", name, what, i);
}

/* Token by token the same text comes out as at once. */
static void stream(const char *name, const text_tokenizer *t, const text_tokenizer_ids *ids,
                   const text_tokenizer_text *whole) {
    text_tokenizer_stream state = {0};
    text_tokenizer_text out = {0}, repaired = {0};
    uint64_t invalid = 0;
    for (size_t i = 0; i < ids->count; i++) {
        if (text_tokenizer_is_special(t, ids->ids[i])) continue;
        assert_int_equal(text_tokenizer_stream_push(t, &state, ids->ids[i], &out, NULL), SIFR_OK);
    }
    assert_int_equal(text_tokenizer_stream_end(&state, &out, NULL), SIFR_OK);
    assert_int_equal(
        text_utf8_repair((const uint8_t *)whole->bytes, whole->count, &repaired, &invalid, NULL),
        SIFR_OK);
    if (out.count != repaired.count || memcmp(out.bytes, repaired.bytes, out.count) != 0)
        fail_msg("%s: %zu bytes token by token, %zu at once", name, out.count, repaired.count);
    text_tokenizer_text_free(&out);
    text_tokenizer_text_free(&repaired);
}

static void corpus_ids(void **state) {
    (void)state;
    const char *name;
    json_t *row;
    json_object_foreach(json_object_get(golden, "tokenizers"), name, row) {
        const json_t *want = json_object_get(json_object_get(golden, "expected"), name);
        const char *ids_hash = json_string_value(json_object_get(want, "ids"));
        const char *text_hash = json_string_value(json_object_get(want, "text"));
        text_tokenizer *t = build(name, row);
        text_tokenizer_scratch *s = NULL;
        text_tokenizer_ids ids = {0};
        text_tokenizer_text text = {0};
        int64_t count = 0;
        assert_int_equal(text_tokenizer_scratch_new(t, &s, NULL), SIFR_OK);
        for (size_t at = 0, i = 0; at < corpus_size; i++) {
            size_t end = tokenizer_chunk_end(corpus, corpus_size, at, chunk);
            ids.count = text.count = 0;
            encode(name, t, s, corpus + at, end - at, true, &ids);
            same(name, "ids", i, tokenizer_hash(ids.ids, ids.count), ids_hash);
            assert_int_equal(text_tokenizer_decode(t, ids.ids, ids.count, true, &text, NULL),
                             SIFR_OK);
            if (t->model != TEXT_MODEL_BYTES) /* whose bytes are not repaired */
                same(name, "text", i, hash_bytes(text.bytes, text.count), text_hash);
            stream(name, t, &ids, &text);
            count += (int64_t)ids.count;
            at = end;
        }
        assert_int_equal(count, json_integer_value(json_object_get(want, "count")));
        text_tokenizer_ids_free(&ids);
        text_tokenizer_text_free(&text);
        text_tokenizer_scratch_free(s);
        text_tokenizer_free(t);
    }
}

static void cuts(void **state) {
    (void)state;
    static const char *const never[] = {"llama2", "deberta3", "nmt", "plain"};
    size_t cut = 0;
    const char *name;
    json_t *row;
    json_object_foreach(json_object_get(golden, "tokenizers"), name, row) {
        text_tokenizer *t = build(name, row);
        text_tokenizer_scratch *s = NULL;
        text_tokenizer_ids whole = {0}, parts = {0};
        size_t size = 40000, pieces = 0;
        while ((corpus[size] & 0xC0) == 0x80) size--;
        assert_int_equal(text_tokenizer_scratch_new(t, &s, NULL), SIFR_OK);
        encode(name, t, s, corpus, size, false, &whole);
        for (size_t at = 0; at < size; pieces++) {
            size_t end = text_tokenizer_cut(t, corpus, size, at + 1 + pieces % 5);
            assert_true(end > at);
            encode(name, t, s, corpus + at, end - at, false, &parts);
            at = end;
        }
        if (parts.count != whole.count ||
            memcmp(parts.ids, whole.ids, whole.count * sizeof *whole.ids) != 0)
            fail_msg("%s: %zu pieces give other ids than the whole", name, pieces);
        for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
            if (strcmp(name, never[i]) == 0) assert_int_equal(pieces, 1);
        }
        cut += pieces > 50;
        text_tokenizer_ids_free(&whole);
        text_tokenizer_ids_free(&parts);
        text_tokenizer_scratch_free(s);
        text_tokenizer_free(t);
    }
    print_message("%zu kinds are cut\n", cut);
    assert_true(cut >= 14);
}

static void pairs(void **state) {
    (void)state;
    json_t *phrases = tokenizer_golden("phrases.json"), *row, *pair;
    const char *name;
    size_t i, k;
    json_object_foreach(json_object_get(golden, "tokenizers"), name, row) {
        const json_t *want = json_object_get(json_object_get(golden, "expected"), name);
        text_tokenizer *t = build(name, row);
        text_tokenizer_scratch *s = NULL;
        text_tokenizer_ids ids = {0}, types = {0};
        assert_int_equal(text_tokenizer_scratch_new(t, &s, NULL), SIFR_OK);
        json_array_foreach(json_object_get(want, "pairs"), i, pair) {
            const json_t *first = json_array_get(phrases, 3 * i);
            const json_t *second = json_array_get(phrases, 3 * i + 1);
            const json_t *right = json_array_get(pair, 1), *right_types = json_array_get(pair, 2);
            text_tokenizer_pair texts = {json_string_value(first), json_string_value(second),
                                         json_string_length(first), json_string_length(second),
                                         json_integer_value(json_array_get(pair, 0))};
            bool truncated;
            ids.count = types.count = 0;
            assert_int_equal(
                text_tokenizer_encode_pair(t, s, &texts, &ids, &types, &truncated, NULL), SIFR_OK);
            if (ids.count != json_array_size(right)) fail_msg("%s: pair %zu", name, i);
            assert_int_equal(types.count, ids.count);
            for (k = 0; k < ids.count; k++) {
                if (ids.ids[k] != json_integer_value(json_array_get(right, k)) ||
                    types.ids[k] != json_integer_value(json_array_get(right_types, k)))
                    fail_msg("%s: pair %zu, token %zu", name, i, k);
            }
            if (truncated) assert_int_equal(ids.count, texts.max_length);
        }
        text_tokenizer_ids_free(&ids);
        text_tokenizer_ids_free(&types);
        text_tokenizer_scratch_free(s);
        text_tokenizer_free(t);
    }
    json_decref(phrases);
}

static void one_text(void **state) {
    (void)state;
    text_tokenizer *t =
        build("bert", json_object_get(json_object_get(golden, "tokenizers"), "bert"));
    text_tokenizer_scratch *s = NULL;
    text_tokenizer_ids ids = {0}, types = {0};
    text_tokenizer_pair text = {.first = "the of", .first_size = 6, .max_length = 3};
    sifr_error error = {0};
    bool truncated = false;
    assert_int_equal(text_tokenizer_scratch_new(t, &s, NULL), SIFR_OK);
    assert_int_equal(text_tokenizer_encode_pair(t, s, &text, &ids, &types, &truncated, NULL),
                     SIFR_OK);
    assert_int_equal(ids.count, 3);
    assert_int_equal(ids.ids[0], 2);
    assert_int_equal(ids.ids[2], 3);
    assert_true(truncated);
    text.max_length = 2;
    assert_int_equal(text_tokenizer_encode_pair(t, s, &text, &ids, &types, &truncated, &error),
                     SIFR_USAGE);
    assert_non_null(strstr(error.message, "adds 2 tokens"));
    text_tokenizer_ids_free(&ids);
    text_tokenizer_ids_free(&types);
    text_tokenizer_scratch_free(s);
    text_tokenizer_free(t);
}

static int set_up(void **state) {
    (void)state;
    golden = tokenizer_golden("kinds.json");
    chunk = (size_t)json_integer_value(json_object_get(golden, "chunk"));
    corpus =
        tokenizer_corpus((uint64_t)json_integer_value(json_object_get(golden, "seed")),
                         (size_t)json_integer_value(json_object_get(golden, "size")), &corpus_size);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    json_decref(golden);
    free(corpus);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(corpus_ids), cmocka_unit_test(cuts),
                                       cmocka_unit_test(pairs), cmocka_unit_test(one_text)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
