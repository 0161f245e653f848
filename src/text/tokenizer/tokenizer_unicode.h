/* What the splitting patterns and NFC ask of a code point, as one table made from utf8proc; UTF-8.
 */
#ifndef TEXT_TOKENIZER_UNICODE_H
#define TEXT_TOKENIZER_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

/* Low two bits of a code point's flags: what \s, \p{L} and \p{N} say, else OTHER. */
enum { TEXT_OTHER = 0, TEXT_SPACE = 1, TEXT_LETTER = 2, TEXT_NUMBER = 3 };
enum {
    TEXT_CLASS = 3,
    TEXT_UNSTABLE = 4, /* NFC may change it or move it, with its neighbours */
    TEXT_BARRIER = 8,  /* NFC never reaches across it */
    TEXT_PUNCTUATION = 16,
    TEXT_MARK = 32,    /* nonspacing */
    TEXT_CONTROL = 64, /* control, format, private use */
    TEXT_WORD = 128    /* what \w matches */
};

typedef struct text_unicode {
    uint8_t *flags;       /* distinct pages of 256 code points */
    uint16_t pages[4352]; /* code point >> 8 to page */
    bool normalizes;      /* the NFC flags are filled */
} text_unicode;

sifr_status text_unicode_build(text_unicode *unicode, bool with_nfc,
                               sifr_error *error) SIFR_MUST_CHECK;
void text_unicode_free(text_unicode *unicode);

/* The general category, as utf8proc numbers them and as \p{…} of the library has it
 * (tokenizer_unicode_kinds.c); what \s and, in the `regex` crate, \w match. */
int text_unicode_kind(uint32_t c);
bool text_unicode_is_space(uint32_t c);
bool text_unicode_is_word(uint32_t c);
/* tokenizer_unicode_ages.c: the same as the library's Unicode tables have it. The flags of all code
 * points; what StripAccents drops; whether a form may take c apart; the simple lower case. */
void text_unicode_correct(uint8_t *all);
bool text_unicode_is_combining(uint32_t c);
bool text_unicode_decomposes(uint32_t c);
uint32_t text_unicode_lower(uint32_t c);

static inline uint8_t text_unicode_flags(const text_unicode *unicode, uint32_t c) {
    return unicode->flags[(size_t)unicode->pages[c >> 8] << 8 | (c & 255)];
}

/* The code point at p, of valid UTF-8, and its length in bytes. */
static inline uint32_t text_utf8_get(const uint8_t *p, size_t *length) {
    if (p[0] < 0x80) return *length = 1, p[0];
    if (p[0] < 0xE0) return *length = 2, (p[0] & 31u) << 6 | (p[1] & 63u);
    if (p[0] < 0xF0) return *length = 3, (p[0] & 15u) << 12 | (p[1] & 63u) << 6 | (p[2] & 63u);
    *length = 4;
    return (p[0] & 7u) << 18 | (p[1] & 63u) << 12 | (p[2] & 63u) << 6 | (p[3] & 63u);
}

/* Writes c into out[4], returns the number of bytes. */
static inline size_t text_utf8_put(uint32_t c, uint8_t *out) {
    if (c < 0x80) return out[0] = (uint8_t)c, 1;
    if (c < 0x800) {
        out[0] = (uint8_t)(0xC0 | c >> 6), out[1] = (uint8_t)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (uint8_t)(0xE0 | c >> 12), out[1] = (uint8_t)(0x80 | (c >> 6 & 63));
        out[2] = (uint8_t)(0x80 | (c & 63));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | c >> 18), out[1] = (uint8_t)(0x80 | (c >> 12 & 63));
    out[2] = (uint8_t)(0x80 | (c >> 6 & 63)), out[3] = (uint8_t)(0x80 | (c & 63));
    return 4;
}

/* Length of the valid character at p < end, or 0; then *skip is the length of the invalid sequence
 * (the longest beginning of a valid character, at least 1: Unicode 15, table 3-8), and *cut tells
 * whether the text ended inside what may become a character. */
size_t text_utf8_check(const uint8_t *p, const uint8_t *end, size_t *skip, bool *cut);
/* Length of the valid UTF-8 that the text begins with. */
size_t text_utf8_valid(const uint8_t *text, size_t size);

/* Start of the character before p > begin, in valid UTF-8. */
static inline const uint8_t *text_utf8_back(const uint8_t *p, const uint8_t *begin) {
    do p--;
    while (p > begin && (*p & 0xC0) == 0x80);
    return p;
}

#endif
