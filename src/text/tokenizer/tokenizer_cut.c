/* Where a long text may be cut, for threads that encode its parts. */
#include "text/tokenizer/tokenizer_internal.h"

/* A cut goes between a character and a blank or line end behind it. Before a blank no pattern lets
 * a piece that began earlier go on, and what the piece before does not depend on the blank; before
 * a line end that holds for GPT-2 after anything but white space, for the others after letters and
 * numbers. */
static size_t cut_direct(const text_tokenizer *tokenizer, const uint8_t *bytes, size_t size,
                         size_t from) {
    for (size_t i = from > 1 ? from : 1; i < size; i++) {
        if (bytes[i] != ' ' && (bytes[i] != '\n' || tokenizer->prefix_space)) continue;
        const uint8_t *end = bytes + i, *begin = i > 4 ? end - 4 : bytes;
        const uint8_t *before = text_utf8_back(end, begin);
        size_t skip, length;
        bool cut;
        if (text_utf8_check(before, end, &skip, &cut) != (size_t)(end - before)) continue;
        uint32_t c = text_utf8_get(before, &length);
        int class = text_unicode_flags(&tokenizer->unicode, c) & TEXT_CLASS;
        bool stable = !(text_unicode_flags(&tokenizer->unicode, c) & TEXT_UNSTABLE);
        if (bytes[i] == '\n' && !stable) continue; /* NFC may make a mark of a letter's end */
        if (class == TEXT_LETTER || class == TEXT_NUMBER ||
            (class == TEXT_OTHER && (bytes[i] == ' ' || tokenizer->split == TEXT_SPLIT_GPT2)))
            return i;
    }
    return size;
}

/* With steps: before a blank that stands behind an ASCII letter, if all steps allow that. */
size_t text_tokenizer_cut(const text_tokenizer *tokenizer, const char *text, size_t size,
                          size_t from) {
    if (tokenizer->no_cut) return size;
    if (tokenizer->direct) return cut_direct(tokenizer, (const uint8_t *)text, size, from);
    if (!tokenizer->cut_at_blank) return size;
    for (size_t i = from > 1 ? from : 1; i < size; i++) {
        const char *blank = memchr(text + i, ' ', size - i);
        if (!blank) return size;
        i = (size_t)(blank - text);
        int before = text[i - 1] | 0x20;
        if (before >= 'a' && before <= 'z') return i;
    }
    return size;
}
