/* Ids as the `tokenizers` library gives them: tests/golden/make_tokenizer.py.
 * sanitizers in the soak alone: what is hostile has a test of its own */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/tokenizer_case.h"

static json_t *expected;
static char *corpus;
static size_t corpus_size;

static int64_t number(const json_t *object, const char *key) {
    return (int64_t)json_integer_value(json_object_get(object, key));
}

static void encode(const text_tokenizer *t, text_tokenizer_scratch *s, const char *text,
                   size_t size, bool special, text_tokenizer_ids *out) {
    sifr_error error = {0};
    if (text_tokenizer_encode(t, s, text, size, special, out, &error) != SIFR_OK)
        fail_msg("%s", error.message);
}

static text_tokenizer_scratch *scratch_of(const text_tokenizer *t) {
    text_tokenizer_scratch *s = NULL;
    assert_int_equal(text_tokenizer_scratch_new(t, &s, NULL), SIFR_OK);
    return s;
}

static void corpus_ids(void **state) {
    (void)state;
    const char *name;
    json_t *row;
    json_object_foreach(json_object_get(expected, "tokenizers"), name, row) {
        text_tokenizer *t = tokenizer_golden_load(name);
        text_tokenizer_scratch *s = scratch_of(t);
        text_tokenizer_ids ids = {0};
        char what[128];
        assert_int_equal(text_tokenizer_vocab_size(t), number(row, "vocab_size"));
        size_t at = 0, i = 0, chunk = (size_t)number(expected, "chunk");
        for (; at < corpus_size; i++) {
            size_t end = tokenizer_chunk_end(corpus, corpus_size, at, chunk);
            /* A copy of just this size, so that a sanitizer sees a read behind the end. */
            char *copy = malloc(end - at);
            assert_non_null(copy);
            memcpy(copy, corpus + at, end - at);
            ids.count = 0;
            encode(t, s, copy, end - at, false, &ids);
            free(copy);
            snprintf(what, sizeof what, "%s, chunk %zu", name, i);
            tokenizer_same(what, &ids,
                           json_integer_value(json_array_get(json_object_get(row, "counts"), i)),
                           json_string_value(json_array_get(json_object_get(row, "hashes"), i)));
            at = end;
        }
        assert_int_equal(i, json_array_size(json_object_get(row, "counts")));
        ids.count = 0;
        encode(t, s, corpus, corpus_size, false, &ids);
        tokenizer_same(name, &ids, number(row, "whole_count"),
                       json_string_value(json_object_get(row, "whole_hash")));
        assert_int_equal(text_tokenizer_invalid(s), 0);

        /* Back to the same bytes, where nothing was normalized, stripped or put before. */
        if (strcmp(name, "qwen2") != 0 && strcmp(name, "prefix") != 0) {
            text_tokenizer_text text = {0};
            assert_int_equal(text_tokenizer_decode(t, ids.ids, ids.count, false, &text, NULL),
                             SIFR_OK);
            assert_int_equal(text.count, corpus_size);
            assert_memory_equal(text.bytes, corpus, corpus_size);
            text_tokenizer_text_free(&text);
        }
        text_tokenizer_ids_free(&ids);
        text_tokenizer_scratch_free(s);
        text_tokenizer_free(t);
    }
}

static void same_ids(const json_t *want, const text_tokenizer_ids *ids, const char *what) {
    if (json_array_size(want) != ids->count)
        fail_msg("%s: %zu ids, not %zu", what, ids->count, json_array_size(want));
    for (size_t i = 0; i < ids->count; i++) {
        if (json_integer_value(json_array_get(want, i)) != ids->ids[i])
            fail_msg("%s: id %zu is %d, not %lld", what, i, ids->ids[i],
                     (long long)json_integer_value(json_array_get(want, i)));
    }
}

static void short_texts(void **state) {
    (void)state;
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(expected, "cases"), i, row) {
        const json_t *text = json_array_get(row, 1);
        text_tokenizer *t = tokenizer_golden_load(json_string_value(json_array_get(row, 0)));
        text_tokenizer_scratch *s = scratch_of(t);
        text_tokenizer_ids ids = {0};
        encode(t, s, json_string_value(text), json_string_length(text),
               json_is_true(json_array_get(row, 2)), &ids);
        same_ids(json_array_get(row, 3), &ids, json_string_value(text));
        text_tokenizer_ids_free(&ids);
        text_tokenizer_scratch_free(s);
        text_tokenizer_free(t);
    }
}

static void invalid_utf8(void **state) {
    (void)state;
    text_tokenizer *t = tokenizer_golden_load("gpt2");
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(expected, "invalid"), i, row) {
        const char *hex = json_string_value(json_array_get(row, 0));
        char text[256];
        size_t size = strlen(hex) / 2;
        for (size_t k = 0; k < size; k++) {
            unsigned byte;
            assert_int_equal(sscanf(hex + 2 * k, "%2x", &byte), 1);
            text[k] = (char)byte;
        }
        text_tokenizer_scratch *s = scratch_of(t);
        text_tokenizer_ids ids = {0};
        encode(t, s, text, size, false, &ids);
        same_ids(json_array_get(row, 2), &ids, hex);
        assert_int_equal(text_tokenizer_invalid(s), json_integer_value(json_array_get(row, 1)));
        text_tokenizer_ids_free(&ids);
        text_tokenizer_scratch_free(s);
    }
    text_tokenizer_free(t);
}

static void decoding(void **state) {
    (void)state;
    text_tokenizer *t = tokenizer_golden_load("gpt2");
    size_t i, k;
    json_t *row, *id;
    json_array_foreach(json_object_get(expected, "decode"), i, row) {
        for (int skip = 0; skip < 2; skip++) { /* token by token, invalid bytes replaced */
            const json_t *want = json_array_get(row, skip ? 2 : 1);
            text_tokenizer_stream stream = {0};
            text_tokenizer_text text = {0};
            json_array_foreach(json_array_get(row, 0), k, id) {
                int32_t value = (int32_t)json_integer_value(id);
                if (skip && text_tokenizer_is_special(t, value)) continue;
                assert_int_equal(text_tokenizer_stream_push(t, &stream, value, &text, NULL),
                                 SIFR_OK);
            }
            assert_int_equal(text_tokenizer_stream_end(&stream, &text, NULL), SIFR_OK);
            assert_int_equal(text.count, json_string_length(want));
            if (text.count) assert_memory_equal(text.bytes, json_string_value(want), text.count);
            text_tokenizer_text_free(&text);
        }
    }
    static const int32_t bad[] = {5, 100000}, negative[] = {-1};
    text_tokenizer_text text = {0};
    sifr_error error = {0};
    assert_int_equal(text_tokenizer_decode(t, bad, 2, false, &text, &error), SIFR_FAILED);
    assert_non_null(strstr(error.message, "id 1: 100000"));
    assert_int_equal(text_tokenizer_decode(t, negative, 1, false, &text, &error), SIFR_FAILED);
    text_tokenizer_text_free(&text);
    text_tokenizer_free(t);
}

static void cuts(void **state) {
    (void)state;
    static const char *const names[] = {"gpt2", "llama3", "digits", "prefix", "qwen2_trained"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        text_tokenizer *t = tokenizer_golden_load(names[n]);
        text_tokenizer_scratch *s = scratch_of(t);
        text_tokenizer_ids whole = {0}, parts = {0};
        size_t size = 300000, at = 0, pieces = 0;
        while ((corpus[size] & 0xC0) == 0x80) size--;
        encode(t, s, corpus, size, false, &whole);
        for (; at < size; pieces++) {
            size_t end = text_tokenizer_cut(t, corpus, size, at + 1 + pieces % 40);
            assert_true(end > at);
            assert_true(end <= size);
            encode(t, s, corpus + at, end - at, false, &parts);
            at = end;
        }
        assert_true(pieces > 3000);
        if (parts.count != whole.count ||
            memcmp(parts.ids, whole.ids, whole.count * sizeof *whole.ids) != 0)
            fail_msg("%s: %zu pieces give other ids than the whole", names[n], pieces);
        text_tokenizer_ids_free(&whole);
        text_tokenizer_ids_free(&parts);
        text_tokenizer_scratch_free(s);
        text_tokenizer_free(t);
    }
    text_tokenizer *t = tokenizer_golden_load("qwen2"); /* <pad> takes blanks along */
    assert_int_equal(text_tokenizer_cut(t, "a b c", 5, 1), 5);
    text_tokenizer_free(t);
}

typedef struct job {
    const text_tokenizer *tokenizer;
    const json_t *row;
    bool right;
} job;

static void *run(void *argument) {
    job *j = argument;
    text_tokenizer_scratch *s = NULL;
    text_tokenizer_ids ids = {0};
    char hash[17];
    if (text_tokenizer_scratch_new(j->tokenizer, &s, NULL) == SIFR_OK &&
        text_tokenizer_encode(j->tokenizer, s, corpus, corpus_size, false, &ids, NULL) == SIFR_OK) {
        snprintf(hash, sizeof hash, "%016llx",
                 (unsigned long long)tokenizer_hash(ids.ids, ids.count));
        j->right = !strcmp(hash, json_string_value(json_object_get(j->row, "whole_hash")));
    }
    text_tokenizer_ids_free(&ids);
    text_tokenizer_scratch_free(s);
    return NULL;
}

static void threads(void **state) {
    (void)state;
    text_tokenizer *t = tokenizer_golden_load("qwen2");
    pthread_t ids[4];
    job jobs[4];
    for (int i = 0; i < 4; i++) {
        jobs[i] =
            (job){t, json_object_get(json_object_get(expected, "tokenizers"), "qwen2"), false};
        assert_int_equal(pthread_create(&ids[i], NULL, run, &jobs[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(ids[i], NULL);
        assert_true(jobs[i].right);
    }
    text_tokenizer_free(t);
}

static int set_up(void **state) {
    (void)state;
    expected = tokenizer_golden("expected.json");
    corpus = tokenizer_corpus((uint64_t)number(expected, "seed"),
                              (size_t)number(expected, "corpus_bytes"), &corpus_size);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    json_decref(expected);
    free(corpus);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corpus_ids), cmocka_unit_test(short_texts), cmocka_unit_test(invalid_utf8),
        cmocka_unit_test(decoding),   cmocka_unit_test(cuts),        cmocka_unit_test(threads)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
