/* The parts of a tokenizer that have languages of their own, any bytes. Input: one byte that
 * chooses; then, even: a regular expression, a NUL and a text, in which it is looked for; odd: a
 * precompiled character map of as many bytes as the second byte says times 8, and a text. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/tokenizer/tokenizer_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

static void search(const char *pattern, const uint8_t *text, size_t size) {
    text_regex *regex = NULL;
    text_regex_state state = {.budget = text_regex_budget(size)};
    sifr_error error = {0};
    const uint8_t *start = text, *stop = text;
    if (text_regex_compile(pattern, "input", &regex, &error) != SIFR_OK) {
        must(error.message[0] && !strchr(error.message, '\n'));
        return;
    }
    for (const uint8_t *at = text; start; at = stop) {
        if (text_regex_find(regex, &state, text, at, text + size, &start, &stop, &error) != SIFR_OK)
            break;
        must(!start || (start >= at && stop > start && stop <= text + size));
    }
    (void)text_regex_cut_is_safe(regex);
    (void)text_regex_ends_at_blank(regex);
    free(state.frames);
    text_regex_free(regex);
}

static void map(const uint8_t *bytes, size_t size, const uint8_t *text, size_t text_size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char base64[4096];
    size_t used = 0;
    for (size_t i = 0; i < size; i += 3) {
        uint32_t bits = (uint32_t)bytes[i] << 16;
        if (i + 1 < size) bits |= (uint32_t)bytes[i + 1] << 8;
        if (i + 2 < size) bits |= bytes[i + 2];
        for (int shift = 18; shift >= 0; shift -= 6) base64[used++] = digits[bits >> shift & 63];
    }
    base64[used] = 0;
    text_charsmap *made = NULL;
    text_tokenizer_text out = {0};
    sifr_error error = {0};
    if (text_charsmap_read(base64, "input", &made, &error) == SIFR_OK && made) {
        (void)text_charsmap_keeps_words(made);
        if (text_charsmap_apply(made, text, text_size, &out, &error) == SIFR_OK && out.count)
            must(text_utf8_valid((const uint8_t *)out.bytes, out.count) == out.count);
    }
    text_charsmap_free(made);
    text_tokenizer_text_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    text_tokenizer_text text = {0};
    uint64_t invalid = 0;
    if (size < 2) return 0;
    const uint8_t *begin = data + 1, *end = data + size, *rest;
    size_t map_size = 0;
    if (data[0] & 1) {
        map_size = (size_t)data[1] * 8;
        begin++;
        if (map_size > (size_t)(end - begin)) map_size = (size_t)(end - begin);
        rest = begin + map_size;
    } else {
        const uint8_t *nul = memchr(begin, 0, size - 1);
        if (!nul || text_utf8_valid(begin, (size_t)(nul - begin)) != (size_t)(nul - begin))
            return 0;
        rest = nul + 1;
    }
    must(text_utf8_repair(rest, (size_t)(end - rest), &text, &invalid, NULL) == SIFR_OK);
    const uint8_t *bytes = (const uint8_t *)(text.bytes ? text.bytes : "");
    if (data[0] & 1)
        map(begin, map_size, bytes, text.count);
    else
        search((const char *)begin, bytes, text.count);
    text_tokenizer_text_free(&text);
    return 0;
}
