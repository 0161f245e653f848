#include "base/columns.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the character at `text`, and its code; 1 and the byte itself where it is no UTF-8. */
static size_t take(const char *text, uint32_t *code, bool *right) {
    const unsigned char *t = (const unsigned char *)text;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = t[0] < 0x80             ? 1
                    : (t[0] & 0xe0) == 0xc0 ? 2
                    : (t[0] & 0xf0) == 0xe0 ? 3
                    : (t[0] & 0xf8) == 0xf0 ? 4
                                            : 0;
    *code = t[0];
    *right = length == 1;
    if (length < 2) return 1;
    uint32_t whole = t[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((t[i] & 0xc0) != 0x80) return 1;
        whole = whole << 6 | (t[i] & 0x3f);
    }
    if (whole < least[length] || whole > 0x10ffff || (whole >= 0xd800 && whole < 0xe000)) return 1;
    *code = whole;
    *right = true;
    return length;
}

/* Scripts with wide signs, and pictures, begin here; charts of braille and lines are narrow. */
static size_t width_of(uint32_t code) {
    if (code >= 0x2000 && code < 0x2e80) return code >= 0x231a && code < 0x2500 ? 2 : 1;
    return code >= 0x1100 ? 2 : 1;
}

size_t base_fit_columns(const char *text, size_t columns) {
    size_t used = 0, at = 0;
    while (text[at]) {
        uint32_t code;
        bool right;
        size_t length = take(text + at, &code, &right);
        used += width_of(code);
        if (used > columns) break;
        at += length;
    }
    return at;
}

size_t base_columns(const char *text) {
    size_t used = 0;
    while (*text) {
        uint32_t code;
        bool right;
        text += take(text, &code, &right);
        used += width_of(code);
    }
    return used;
}

/* Signs that turn, join or hide what stands beside them are no text to look at. */
static bool is_shown(uint32_t code) {
    if (code < 0xa0) return code >= 0x20 && code < 0x7f;
    return code != 0xad && code != 0x61c && code != 0xfeff && code < 0xe0000 &&
           !(code >= 0x200b && code <= 0x200f) && !(code >= 0x2028 && code <= 0x202e) &&
           !(code >= 0x2060 && code <= 0x206f) && !(code >= 0x300 && code < 0x370);
}

char *base_show_text(const char *text, bool utf8, char *out, size_t size) {
    enum { LONGEST = 16 }; /* of what a character becomes: four bytes as "\xNN" */
    size_t used = 0;
    while (*text && used + LONGEST < size) {
        uint32_t code;
        bool right;
        size_t length = take(text, &code, &right);
        if (right && is_shown(code) && (utf8 || code < 0x80)) {
            memcpy(out + used, text, length);
            used += length;
        } else {
            for (size_t i = 0; i < length; i++)
                used += (size_t)snprintf(out + used, size - used, "\\x%02x",
                                         (unsigned)(unsigned char)text[i]);
        }
        text += length;
    }
    out[used] = '\0';
    return out;
}
