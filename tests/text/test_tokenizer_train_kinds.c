/* The trainers of WordPiece and Unigram against the library's: the same WordPiece where the order
 * of equals does not matter; a Unigram under which text that was not trained on is as likely.
 * sanitizers in the soak alone: what is hostile has a test of its own */
#include <math.h>
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
#include "base/heap.h"
#include "base/json.h"
#include "support/tokenizer_case.h"
#include "text/tokenizer/tokenizer_internal.h"
#include "text/tokenizer/tokenizer_train.h"

enum { SEED = 20261121, CHUNK = 16384 };

static char directory[64];

static json_t *trained(const char *kind) {
    char path[BASE_PATH_LENGTH];
    const char *source = getenv("SOURCE");
    json_t *all = NULL;
    sifr_error error = {0};
    snprintf(path, sizeof path, "%s/tests/golden/tokenizer_files/trained.json",
             source ? source : ".");
    if (base_json_load(path, 1 << 20, &all, &error) != SIFR_OK) fail_msg("%s", error.message);
    json_t *part = json_incref(json_object_get(all, kind));
    json_decref(all);
    return part;
}

static void finish(text_tokenizer_trainer *trainer, text_tokenizer **out) {
    sifr_error error = {0};
    snprintf(directory, sizeof directory, "train_kinds_%d", (int)getpid());
    if (text_tokenizer_trainer_finish(trainer, &error) != SIFR_OK) fail_msg("%s", error.message);
    if (text_tokenizer_trainer_write(trainer, directory, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    if (text_tokenizer_load(directory, out, &error) != SIFR_OK) fail_msg("%s", error.message);
}

/* What the last trainer wrote; removed. */
static char *written(void) {
    char path[BASE_PATH_LENGTH], *text;
    size_t size;
    assert_int_equal(base_path_join(path, directory, "tokenizer.json", NULL), SIFR_OK);
    assert_int_equal(base_read_file(path, 1 << 24, &text, &size, NULL), SIFR_OK);
    assert_int_equal(base_remove_tree(directory, NULL), SIFR_OK);
    return text;
}

static int compare_keys(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void take(uint64_t *hash, const char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) *hash = (*hash ^ (uint8_t)bytes[i]) * 0x100000001b3u;
}

static void word_piece(void **state) {
    (void)state;
    json_t *want = trained("wordpiece"), *phrases = tokenizer_golden("phrases.json"), *phrase;
    text_tokenizer_options options = {
        .type = "wordpiece",
        .vocab_size = 100000,
        .min_frequency = json_integer_value(json_object_get(want, "min_frequency"))};
    text_tokenizer_trainer *trainer = NULL;
    text_tokenizer *t = NULL;
    char found[17], *text;
    size_t i, count = 0;
    assert_int_equal(text_tokenizer_trainer_new(&options, &trainer, NULL), SIFR_OK);
    json_array_foreach(phrases, i, phrase) {
        const char *line = json_string_value(phrase);
        size_t size = json_string_length(phrase), characters = 0;
        for (size_t k = 0; k < size; k++) characters += (line[k] & 0xC0) != 0x80;
        if (!size || line[size - 1] != '\n' || characters <= 20) continue;
        assert_int_equal(text_tokenizer_trainer_feed(trainer, line, size, NULL), SIFR_OK);
    }
    finish(trainer, &t);
    text_tokenizer_trainer_free(trainer);
    json_t *root = json_loads(text = written(), 0, NULL), *value;
    json_t *vocabulary = json_object_get(json_object_get(root, "model"), "vocab");
    const char *key, **keys = calloc(json_object_size(vocabulary) + 1, sizeof *keys);
    assert_int_equal(json_object_size(vocabulary),
                     json_integer_value(json_object_get(want, "size")));
    json_object_foreach(vocabulary, key, value) keys[count++] = key;
    qsort(keys, count, sizeof *keys, compare_keys);
    uint64_t hash = 0xcbf29ce484222325u;
    take(&hash, "\"", 1);
    for (i = 0; i < count; i++) {
        if (i) take(&hash, "\n", 1);
        take(&hash, keys[i], strlen(keys[i]));
    }
    take(&hash, "\"", 1);
    snprintf(found, sizeof found, "%016llx", (unsigned long long)hash);
    assert_string_equal(found, json_string_value(json_object_get(want, "hash")));
    assert_int_equal(text_tokenizer_id(t, "[MASK]"), 4);
    free(keys);
    free(text);
    json_decref(root);
    json_decref(want);
    json_decref(phrases);
    text_tokenizer_free(t);
}

/* The corpus without its NULs, which training leaves out. */
static char *plain_corpus(uint64_t seed, size_t bytes, size_t *size) {
    char *text = tokenizer_corpus(seed, bytes, size);
    size_t kept = 0;
    for (size_t i = 0; i < *size; i++) {
        if (text[i]) text[kept++] = text[i];
    }
    *size = kept;
    return text;
}

static text_tokenizer *train_unigram(const char *text, size_t size, int64_t vocab_size) {
    text_tokenizer_options options = {.type = "unigram", .vocab_size = vocab_size};
    text_tokenizer_trainer *trainer = NULL;
    text_tokenizer *t = NULL;
    assert_int_equal(text_tokenizer_trainer_new(&options, &trainer, NULL), SIFR_OK);
    for (size_t at = 0, end; at < size; at = end) {
        end = tokenizer_chunk_end(text, size, at, CHUNK);
        assert_int_equal(text_tokenizer_trainer_feed(trainer, text + at, end - at, NULL), SIFR_OK);
    }
    finish(trainer, &t);
    text_tokenizer_trainer_free(trainer);
    return t;
}

static void encode(const text_tokenizer *t, const char *text, size_t size,
                   text_tokenizer_ids *ids) {
    text_tokenizer_scratch *s = NULL;
    sifr_error error = {0};
    assert_int_equal(text_tokenizer_scratch_new(t, &s, NULL), SIFR_OK);
    if (text_tokenizer_encode(t, s, text, size, false, ids, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    text_tokenizer_scratch_free(s);
}

static void unigram(void **state) {
    (void)state;
    json_t *want = trained("unigram");
    int64_t vocab_size = json_integer_value(json_object_get(want, "vocab_size"));
    size_t size, held_size;
    char *text = plain_corpus(SEED + 1, 400000, &size);
    char *held = plain_corpus(
        SEED, (size_t)json_integer_value(json_object_get(want, "held_out_bytes")), &held_size);
    text_tokenizer *t = train_unigram(text, size, vocab_size);
    char *first = written();
    text_tokenizer *again = train_unigram(text, size, vocab_size);
    char *second = written();
    assert_string_equal(first, second);
    assert_true(text_tokenizer_vocab_size(t) <= vocab_size);
    assert_true(text_tokenizer_vocab_size(t) >= vocab_size - 3);

    text_tokenizer_ids ids = {0};
    encode(t, text, size, &ids);
    for (size_t i = 0; i < ids.count; i++) assert_int_not_equal(ids.ids[i], t->unk_id);

    double score = 0, library = json_real_value(json_object_get(want, "score"));
    ids.count = 0;
    encode(t, held, held_size, &ids);
    for (size_t i = 0; i < ids.count; i++)
        score += ids.ids[i] == t->unk_id ? t->unknown_score : t->scores[ids.ids[i]];
    print_message("%zu tokens, score %.0f; the library's: %lld, %.0f\n", ids.count, score,
                  (long long)json_integer_value(json_object_get(want, "tokens")), library);
    assert_true(fabs(score - library) < 0.01 * fabs(library));
    text_tokenizer_ids_free(&ids);
    text_tokenizer_free(t);
    text_tokenizer_free(again);
    free(first);
    free(second);
    free(text);
    free(held);
    json_decref(want);
}

/* A text without blanks is one word: it is learned from in parts. */
static void long_word(void **state) {
    (void)state;
    enum { SIZE = 60000 };
    char *text = malloc(SIZE);
    uint32_t draw = 1;
    for (size_t i = 0; i + 3 <= SIZE; i += 3) {
        draw = draw * 1664525 + 1013904223;
        memcpy(text + i, "\xe4\xb8\x80", 3);
        text[i + 2] = (char)(0x80 + (draw >> 16) % 20);
    }
    text_tokenizer *t = train_unigram(text, SIZE, 200);
    text_tokenizer_ids ids = {0};
    encode(t, text, SIZE, &ids);
    for (size_t i = 0; i < ids.count; i++) assert_int_not_equal(ids.ids[i], t->unk_id);
    assert_in_range(ids.count, SIZE / 12, SIZE / 3 - 200);
    text_tokenizer_ids_free(&ids);
    text_tokenizer_free(t);
    free(written());
    free(text);
}

/* Texts that are small or odd; what is wrong is said. */
static void odd_texts(void **state) {
    (void)state;
    static const char *const kinds[] = {"unigram", "wordpiece"};
    static const char *const texts[] = {"a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                                        "ab ab ab", "x\xff\xfe", "</s> <unk> [CLS] ##a # ## ▁ ▁▁"};
    sifr_error error = {0};
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            text_tokenizer_options options = {.type = kinds[k], .vocab_size = 300};
            text_tokenizer_trainer *trainer = NULL;
            text_tokenizer *t = NULL;
            text_tokenizer_ids ids = {0};
            assert_int_equal(text_tokenizer_trainer_new(&options, &trainer, NULL), SIFR_OK);
            assert_int_equal(text_tokenizer_trainer_feed(trainer, texts[i], strlen(texts[i]), NULL),
                             SIFR_OK);
            finish(trainer, &t);
            encode(t, texts[i], strlen(texts[i]), &ids);
            assert_true(ids.count > 0);
            text_tokenizer_ids_free(&ids);
            text_tokenizer_free(t);
            text_tokenizer_trainer_free(trainer);
            free(written());
        }
        /* Too small for the characters; blanks alone. */
        text_tokenizer_options options = {.type = kinds[k], .vocab_size = 10};
        text_tokenizer_trainer *trainer = NULL;
        assert_int_equal(text_tokenizer_trainer_new(&options, &trainer, NULL), SIFR_OK);
        assert_int_equal(text_tokenizer_trainer_feed(trainer, "abcdefghijk", 11, NULL), SIFR_OK);
        assert_int_equal(text_tokenizer_trainer_finish(trainer, &error), SIFR_USAGE);
        assert_non_null(strstr(error.message, "vocab size 10"));
        text_tokenizer_trainer_free(trainer);
    }
    text_tokenizer_options bad[] = {{.type = "bytes", .vocab_size = 300},
                                    {.type = "unigram", .vocab_size = 300, .split = "gpt2"},
                                    {.type = "unigram", .vocab_size = 300, .min_frequency = 2},
                                    {.type = "unigram", .vocab_size = 300, .lowercase = true},
                                    {.type = "wordpiece", .vocab_size = 7}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        text_tokenizer_trainer *trainer = NULL;
        assert_int_equal(text_tokenizer_trainer_new(&bad[i], &trainer, &error), SIFR_USAGE);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(word_piece), cmocka_unit_test(unigram),
                                       cmocka_unit_test(long_word), cmocka_unit_test(odd_texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
