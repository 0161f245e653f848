/* Where texts are split, what NFC makes of them, and where they may be cut: piece by piece, which
 * ids do not always show. Expected: tests/golden/make_tokenizer.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/heap.h"
#include "support/tokenizer_case.h"
#include "text/tokenizer/tokenizer_internal.h"
#include "text/tokenizer/tokenizer_normal.h"
#include "text/tokenizer/tokenizer_regex.h"

static json_t *expected;
static char *corpus;
static size_t corpus_size;
static text_unicode unicode;

static const char *const names[] = {"gpt2", "llama3", "qwen2"};

static void note(text_tokenizer_ids *sizes, size_t size) {
    assert_int_equal(
        base_grow(&sizes->ids, &sizes->capacity, sizes->count + 1, sizeof *sizes->ids, NULL),
        SIFR_OK);
    sizes->ids[sizes->count++] = (int32_t)size;
}

static void split(text_split_kind kind, const void *text, size_t size, text_tokenizer_ids *sizes) {
    const uint8_t *p = text, *end = p + size;
    while (p < end) {
        const uint8_t *next = text_split_next(kind, &unicode, p, end);
        assert_true(next > p);
        assert_true(next <= end);
        note(sizes, (size_t)(next - p));
        p = next;
    }
}

static void put(text_tokenizer_text *text, uint32_t c) {
    uint8_t bytes[4];
    assert_int_equal(text_tokenizer_text_append(text, bytes, text_utf8_put(c, bytes), NULL),
                     SIFR_OK);
}

/* For each code point of the script's code_points(): `unit`, with the code point for each '*' and
 * combining marks for '.', ':' and ';'. */
static void every(const char *unit, text_tokenizer_text *text) {
    for (uint32_t c = 1; c < 0x110000; c += c < 0x32400 ? 1 : 997) {
        if (c >= 0xD800 && c < 0xE000) continue;
        for (const char *u = unit; *u; u++)
            put(text, *u == '*'   ? c
                      : *u == '.' ? 0x323
                      : *u == ':' ? 0x301
                      : *u == ';' ? 0x327
                                  : (uint32_t)*u);
    }
}

static void same(const char *what, const text_tokenizer_ids *ids, const json_t *row, size_t at) {
    tokenizer_same(what, ids, json_integer_value(json_array_get(row, at)),
                   json_string_value(json_array_get(row, at + 1)));
}

static void pieces(void **state) {
    (void)state;
    text_tokenizer_text text = {0};
    every("*x'*x *1*\n", &text);
    for (int kind = 0; kind < 3; kind++) {
        const json_t *row = json_object_get(json_object_get(expected, "pieces"), names[kind]);
        text_tokenizer_ids sizes = {0};
        split((text_split_kind)kind, corpus, corpus_size, &sizes);
        same(names[kind], &sizes, row, 0);
        sizes.count = 0;
        split((text_split_kind)kind, text.bytes, text.count, &sizes);
        same(names[kind], &sizes, row, 2);
        text_tokenizer_ids_free(&sizes);
    }
    text_tokenizer_text_free(&text);
}

static void normalize(const char *text, size_t size, text_tokenizer_text *out) {
    out->count = 0;
    assert_int_equal(text_normalize(&unicode, (const uint8_t *)text, size, out, NULL), SIFR_OK);
}

static void normal_form(void **state) {
    (void)state;
    text_tokenizer_text text = {0}, normal = {0};
    every("a*.:*;x", &text);
    for (int i = 0; i < 2; i++) {
        text_tokenizer_ids bytes = {0};
        normalize(i ? text.bytes : corpus, i ? text.count : corpus_size, &normal);
        for (size_t k = 0; k < normal.count; k++) note(&bytes, (uint8_t)normal.bytes[k]);
        same(i ? "NFC of every code point" : "NFC of the corpus", &bytes,
             json_object_get(expected, "nfc"), i ? 2 : 0);
        text_tokenizer_ids_free(&bytes);
        /* What is already normal stays, and is known to be as far as the quick look goes. */
        size_t prefix = text_normal_prefix(&unicode, (uint8_t *)normal.bytes, normal.count);
        assert_true(prefix > 0);
    }
    text_tokenizer_text_free(&text);
    text_tokenizer_text_free(&normal);
}

/* Pieces of the parts are the pieces of the whole, wherever a cut is allowed. */
static void check_cuts(const text_tokenizer *t, const char *text, size_t size) {
    text_tokenizer_ids whole = {0}, parts = {0};
    text_tokenizer_text normal = {0};
    size_t cuts = 0;
    if (t->unicode.normalizes) {
        normalize(text, size, &normal);
        split(t->split, normal.bytes, normal.count, &whole);
    } else {
        split(t->split, text, size, &whole);
    }
    for (size_t at = 0, end; at < size; at = end, cuts++) {
        end = text_tokenizer_cut(t, text, size, at + 1);
        assert_true(end > at);
        assert_true(end <= size);
        if (t->unicode.normalizes) {
            normalize(text + at, end - at, &normal);
            split(t->split, normal.bytes, normal.count, &parts);
        } else {
            split(t->split, text + at, end - at, &parts);
        }
    }
    assert_true(cuts > 10000);
    assert_int_equal(parts.count, whole.count);
    assert_memory_equal(parts.ids, whole.ids, whole.count * sizeof *whole.ids);
    text_tokenizer_ids_free(&whole);
    text_tokenizer_ids_free(&parts);
    text_tokenizer_text_free(&normal);
}

static void cuts(void **state) {
    (void)state;
    static const char *const files[] = {"gpt2", "llama3_trained", "qwen2_trained"};
    text_tokenizer_text text = {0};
    every("*x*\n*1 *\n\n*!\n*!* \n", &text);
    for (size_t i = 0; i < 3; i++) {
        text_tokenizer *t = tokenizer_golden_load(files[i]);
        check_cuts(t, corpus, corpus_size);
        check_cuts(t, text.bytes, text.count);
        text_tokenizer_free(t);
    }
    text_tokenizer_text_free(&text);
}

/* The code points of `text` that \\p{kind} matches. */
static void members(const char *kind, const text_tokenizer_text *text, text_tokenizer_ids *out) {
    char pattern[16];
    text_regex *regex = NULL;
    text_regex_state s = {.budget = INT64_MAX};
    const uint8_t *at = (const uint8_t *)text->bytes, *end = at + text->count, *start, *stop;
    snprintf(pattern, sizeof pattern, "\\p{%s}+", kind);
    assert_int_equal(text_regex_compile(pattern, "input", &regex, NULL), SIFR_OK);
    for (out->count = 0;; at = stop) {
        size_t length;
        assert_int_equal(
            text_regex_find(regex, &s, (const uint8_t *)text->bytes, at, end, &start, &stop, NULL),
            SIFR_OK);
        if (!start) break;
        for (; start < stop; start += length) note(out, text_utf8_get(start, &length));
    }
    free(s.frames);
    text_regex_free(regex);
}

/* General categories are of the library's Unicode, not of utf8proc's. */
static void kinds(void **state) {
    (void)state;
    json_t *wanted = tokenizer_golden("unicode_kinds.json"), *want;
    text_tokenizer_text text = {0};
    text_tokenizer_ids found = {0};
    const char *kind;
    for (uint32_t c = 0; c < 0x110000; c++) {
        if (c < 0xD800 || c >= 0xE000) put(&text, c);
    }
    assert_int_equal(json_object_size(wanted), 36);
    json_object_foreach(wanted, kind, want) {
        members(kind, &text, &found);
        same(kind, &found, want, 0);
    }
    text_tokenizer_ids_free(&found);
    text_tokenizer_text_free(&text);
    json_decref(wanted);
}

static int set_up(void **state) {
    (void)state;
    expected = tokenizer_golden("expected.json");
    corpus = tokenizer_corpus((uint64_t)json_integer_value(json_object_get(expected, "seed")),
                              (size_t)json_integer_value(json_object_get(expected, "corpus_bytes")),
                              &corpus_size);
    return text_unicode_build(&unicode, true, NULL) == SIFR_OK ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    json_decref(expected);
    free(corpus);
    text_unicode_free(&unicode);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(pieces), cmocka_unit_test(normal_form),
                                       cmocka_unit_test(cuts), cmocka_unit_test(kinds)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
