/* Scanners for the three splitting patterns. Each does what a backtracking matcher does with the
 * pattern beside it: alternatives are tried in their order, each as far as it goes. */
#include "text/tokenizer/tokenizer_internal.h"

const char *text_split_pattern(text_split_kind kind) {
    switch (kind) {
    case TEXT_SPLIT_LLAMA3:
        return "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
               " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
    case TEXT_SPLIT_QWEN2:
        return "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
               " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
    default:
        return NULL;
    }
}

const char *text_split_regex(text_split_kind kind) {
    const char *pattern = text_split_pattern(kind);
    return pattern ? pattern
                   : "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
                     "\\s+(?!\\S)|\\s+";
}

static inline int class_at(const text_unicode *unicode, const uint8_t *p, size_t *length) {
    if (*p < 0x80) return *length = 1, unicode->flags[*p] & TEXT_CLASS;
    return text_unicode_flags(unicode, text_utf8_get(p, length)) & TEXT_CLASS;
}

static inline const uint8_t *run_of(const text_unicode *unicode, int class, const uint8_t *p,
                                    const uint8_t *end) {
    size_t length;
    while (p < end && class_at(unicode, p, &length) == class) p += length;
    return p;
}

/* Length of 's 't 're 've 'm 'll 'd at p, where there is a ', or 0. Without case, 's has a third
 * spelling: the long s, U+017F. */
static size_t contraction(const uint8_t *p, const uint8_t *end, bool any_case) {
    if (end - p < 2) return 0;
    int bit = any_case ? 0x20 : 0;
    int a = p[1] | bit;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
    if (end - p < 3) return 0;
    if (any_case && p[1] == 0xC5 && p[2] == 0xBF) return 3;
    int b = p[2] | bit;
    return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

/* \s+(?!\S) or else \s+ at the white space p: all of it at the end of the text; else all but its
 * last character, which goes with the next word; a single one alone. With `lines` the alternative
 * \s*[\r\n]+ comes first: up to the last line end inside. */
static const uint8_t *space_run(const text_unicode *unicode, const uint8_t *p, const uint8_t *end,
                                bool lines) {
    const uint8_t *q = p, *last = p, *line_end = NULL;
    size_t length;
    while (q < end && class_at(unicode, q, &length) == TEXT_SPACE) {
        last = q;
        q += length;
        if (*last == '\n' || *last == '\r') line_end = q;
    }
    if (lines && line_end) return line_end;
    return q == end || last == p ? q : last;
}

/* 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static const uint8_t *next_gpt2(const text_unicode *unicode, const uint8_t *p, const uint8_t *end) {
    size_t length;
    if (*p == '\'') {
        length = contraction(p, end, false);
        if (length) return p + length;
    }
    const uint8_t *q = *p == ' ' && end - p > 1 ? p + 1 : p;
    int class = class_at(unicode, q, &length);
    if (class == TEXT_SPACE) return space_run(unicode, p, end, false);
    return run_of(unicode, class, q + length, end);
}

/* The patterns above, in text_split_pattern. */
static const uint8_t *next_llama(const text_unicode *unicode, const uint8_t *p, const uint8_t *end,
                                 int digits) {
    size_t length, after;
    if (*p == '\'') {
        length = contraction(p, end, true);
        if (length) return p + length;
    }
    int class = class_at(unicode, p, &length);
    const uint8_t *q = p + length;
    if (class == TEXT_LETTER) return run_of(unicode, TEXT_LETTER, q, end);
    if (class == TEXT_NUMBER) {
        for (int i = 1; i < digits && q < end; i++) {
            if (class_at(unicode, q, &after) != TEXT_NUMBER) break;
            q += after;
        }
        return q;
    }
    int next = q < end ? class_at(unicode, q, &after) : TEXT_SPACE;
    if (next == TEXT_LETTER && *p != '\r' && *p != '\n')
        return run_of(unicode, TEXT_LETTER, q + after, end);
    if (class == TEXT_OTHER || (*p == ' ' && next == TEXT_OTHER)) {
        q = run_of(unicode, TEXT_OTHER, q, end);
        while (q < end && (*q == '\r' || *q == '\n')) q++;
        return q;
    }
    return space_run(unicode, p, end, true);
}

const uint8_t *text_split_next(text_split_kind kind, const text_unicode *unicode, const uint8_t *p,
                               const uint8_t *end) {
    if (kind == TEXT_SPLIT_GPT2) return next_gpt2(unicode, p, end);
    return next_llama(unicode, p, end, kind == TEXT_SPLIT_LLAMA3 ? 3 : 1);
}
