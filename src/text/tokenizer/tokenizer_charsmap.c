#include "text/tokenizer/tokenizer_charsmap.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/heap.h"
#include "text/tokenizer/tokenizer_internal.h"
#include "text/tokenizer/tokenizer_normalizer.h"

struct text_charsmap {
    uint32_t *units;
    size_t unit_count;
    uint8_t *texts; /* each with a NUL behind it; a NUL behind the last */
    size_t text_size;
};

static int digit(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes into out, of 3/4 of the size; false: no base64. */
static bool decode(const char *text, size_t size, uint8_t *out, size_t *count) {
    uint32_t bits = 0;
    int have = 0;
    *count = 0;
    while (size && text[size - 1] == '=') size--;
    for (size_t i = 0; i < size; i++) {
        int value = digit(text[i]);
        if (value < 0) return false;
        bits = bits << 6 | (uint32_t)value;
        have += 6;
        if (have >= 8) out[(*count)++] = (uint8_t)(bits >> (have -= 8));
    }
    return true;
}

static sifr_status unpack(const uint8_t *bytes, size_t size, const char *name, text_charsmap **out,
                          sifr_error *error) {
    text_charsmap *map;
    uint32_t units = 0;
    size_t length;
    for (int i = 3; size >= 4 && i >= 0; i--) units = units << 8 | bytes[i];
    if (size < 4 || units % 4 || units > size - 4)
        return base_fail(
            error, SIFR_USAGE,
            "%s: normalizer Precompiled: a map of %zu bytes does not hold the %u bytes "
            "of its double array",
            name, size, units);
    length = size - 4 - units;
    if (text_utf8_valid(bytes + 4 + units, length) != length)
        return base_fail(error, SIFR_USAGE, "%s: normalizer Precompiled: its texts are no UTF-8",
                         name);
    BASE_TRY(base_alloc(1, sizeof *map, &map, error));
    sifr_status status = base_alloc(units / 4 + 1, sizeof *map->units, &map->units, error);
    if (status == SIFR_OK) status = base_alloc(length + 1, 1, &map->texts, error);
    if (status != SIFR_OK) {
        text_charsmap_free(map);
        return status;
    }
    map->unit_count = units / 4;
    map->text_size = length;
    for (size_t i = 0; i < map->unit_count; i++) {
        const uint8_t *p = bytes + 4 + 4 * i;
        map->units[i] =
            (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    }
    if (length) memcpy(map->texts, bytes + 4 + units, length);
    *out = map;
    return SIFR_OK;
}

sifr_status text_charsmap_read(const char *base64, const char *name, text_charsmap **out,
                               sifr_error *error) {
    size_t size = strlen(base64), count;
    uint8_t *bytes;
    *out = NULL;
    if (!size) return SIFR_OK;
    BASE_TRY(base_alloc(size, 1, &bytes, error));
    sifr_status status = decode(base64, size, bytes, &count)
                             ? unpack(bytes, count, name, out, error)
                             : base_fail(error, SIFR_USAGE,
                                         "%s: normalizer Precompiled: precompiled_charsmap is no "
                                         "base64",
                                         name);
    free(bytes);
    return status;
}

void text_charsmap_free(text_charsmap *map) {
    if (!map) return;
    free(map->units);
    free(map->texts);
    free(map);
}

static size_t offset_of(uint32_t unit) {
    return (size_t)(unit >> 10) << ((unit & (1u << 9)) >> 6);
}

/* What the shortest or the longest prefix in the map of the `size` bytes becomes, with the prefix's
 * bytes in *length, or NULL. Places outside of the array, which only a damaged map names, are no
 * match. */
static const char *search(const text_charsmap *map, const uint8_t *p, size_t size, bool longest,
                          size_t *length) {
    size_t at = map->unit_count ? offset_of(map->units[0]) : 0;
    const char *found = NULL;
    for (size_t i = 0; i < size && p[i] && (longest || !found); i++) {
        at ^= p[i];
        if (at >= map->unit_count) break;
        uint32_t unit = map->units[at];
        if ((unit & (1u << 31 | 0xFF)) != p[i]) break;
        at ^= offset_of(unit);
        if (!(unit >> 8 & 1)) continue;
        if (at >= map->unit_count) break;
        size_t text = map->units[at] & 0x7FFFFFFF;
        if (text > map->text_size) break;
        while (text < map->text_size && (map->texts[text] & 0xC0) == 0x80) text++;
        found = (const char *)map->texts + text;
        *length = i + 1;
    }
    return found;
}

static const char *look_up(const text_charsmap *map, const uint8_t *p, size_t size) {
    size_t length;
    return search(map, p, size, false, &length);
}

const char *text_charsmap_longest(const text_charsmap *map, const uint8_t *p, size_t size,
                                  size_t *length) {
    return search(map, p, size, true, length);
}

bool text_charsmap_keeps_words(const text_charsmap *map) {
    for (int c = ' '; c <= 'z'; c++) {
        uint8_t byte = (uint8_t)c;
        bool word = c == ' ' || (c >= 'A' && c <= 'Z') || c >= 'a';
        if (word && look_up(map, &byte, 1)) return false;
    }
    return true;
}

/* Length of the grapheme at p. */
static size_t grapheme(const uint8_t *p, const uint8_t *end) {
    utf8proc_int32_t state = 0;
    size_t length;
    const uint8_t *q = p;
    utf8proc_int32_t last = (utf8proc_int32_t)text_utf8_get(q, &length);
    for (q += length; q < end; q += length) {
        utf8proc_int32_t next = (utf8proc_int32_t)text_utf8_get(q, &length);
        if (utf8proc_grapheme_break_stateful(last, next, &state)) break;
        last = next;
    }
    return (size_t)(q - p);
}

sifr_status text_charsmap_apply(const text_charsmap *map, const uint8_t *text, size_t size,
                                text_tokenizer_text *out, sifr_error *error) {
    const uint8_t *end = text + size;
    size_t limit = out->count + 64 * size + (1 << 16);
    for (const uint8_t *p = text; p < end;) {
        size_t length =
            p + 1 == end || (*p < 0x80 && p[1] < 0x80 && *p != '\r') ? 1 : grapheme(p, end);
        const char *to = length < 6 ? look_up(map, p, length) : NULL;
        BASE_TRY(text_check_growth(out->count, limit, error));
        if (to) {
            BASE_TRY(text_tokenizer_text_append(out, to, strlen(to), error));
            p += length;
            continue;
        }
        for (const uint8_t *stop = p + length; p < stop; p += length) {
            text_utf8_get(p, &length);
            to = look_up(map, p, length);
            if (to)
                BASE_TRY(text_tokenizer_text_append(out, to, strlen(to), error));
            else
                BASE_TRY(text_tokenizer_text_append(out, p, length, error));
        }
    }
    return SIFR_OK;
}
