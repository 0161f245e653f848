#include "text/tokenizer/tokenizer_unicode.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/heap.h"

typedef struct range {
    uint32_t first, last;
} range;

/* Letters and numbers that Unicode 16 has and 15, which Debian 12's utf8proc knows, has not: the
 * `tokenizers` library knows them. tests/golden/make_tokenizer.py --classes prints the list. */
static const range new_letters[] = {
    {0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},   {0xA7DA, 0xA7DC},   {0x105C0, 0x105F3},
    {0x10D4A, 0x10D65}, {0x10D6F, 0x10D85}, {0x10EC2, 0x10EC4}, {0x11380, 0x11389},
    {0x1138B, 0x1138B}, {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113B7},
    {0x113D1, 0x113D1}, {0x113D3, 0x113D3}, {0x11BC0, 0x11BE0}, {0x13460, 0x143FA},
    {0x16100, 0x1611D}, {0x16D40, 0x16D6C}, {0x18CFF, 0x18CFF}, {0x1E5D0, 0x1E5ED},
    {0x1E5F0, 0x1E5F0}, {0x2EBF0, 0x2EE5D},
};
static const range new_numbers[] = {
    {0x10D40, 0x10D49}, {0x116D0, 0x116E3}, {0x11BF0, 0x11BF9}, {0x16130, 0x16139},
    {0x16D70, 0x16D79}, {0x1CCF0, 0x1CCF9}, {0x1E5F1, 0x1E5FA},
};
/* Combining marks that the library's normalizer, of Unicode 9, does not know to combine. */
static const range unknown_marks[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},
    {0xC3C, 0xC3C},     {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},
    {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27},
    {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85},
    {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
    {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34},
    {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45},
    {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F},
    {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF},
};

enum { LAST_PLANES = 0x40000, TAGS = 0xE0000 };

static void mark(uint8_t *all, const range *ranges, size_t count, uint8_t keep, uint8_t set) {
    for (size_t i = 0; i < count; i++) {
        for (uint32_t c = ranges[i].first; c <= ranges[i].last; c++)
            all[c] = (uint8_t)((all[c] & keep) | set);
    }
}
#define MARK(all, ranges, keep, set) mark(all, ranges, sizeof ranges / sizeof *ranges, keep, set)

bool text_unicode_is_space(uint32_t c) {
    int kind = utf8proc_category((utf8proc_int32_t)c);
    return (c >= 9 && c <= 13) || c == 0x85 || kind == UTF8PROC_CATEGORY_ZS ||
           kind == UTF8PROC_CATEGORY_ZL || kind == UTF8PROC_CATEGORY_ZP;
}

bool text_unicode_is_word(uint32_t c) {
    switch (text_unicode_kind(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
        return true;
    default:
        return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) ||
               (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
               (c >= 0x1F170 && c <= 0x1F189);
    }
}

static uint8_t class_of(uint32_t c) {
    uint8_t word = text_unicode_is_word(c) ? TEXT_WORD : 0;
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
        return TEXT_LETTER | TEXT_WORD;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return TEXT_NUMBER | word;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return TEXT_SPACE;
    case UTF8PROC_CATEGORY_MN:
        return TEXT_OTHER | TEXT_MARK | TEXT_WORD;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
        return TEXT_OTHER | TEXT_PUNCTUATION | word;
    case UTF8PROC_CATEGORY_CC:
        return TEXT_CONTROL | ((c >= 9 && c <= 13) || c == 0x85 ? TEXT_SPACE : TEXT_OTHER);
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO:
        return TEXT_OTHER | TEXT_CONTROL | word;
    default: /* all of ASCII's signs count as punctuation */
        return TEXT_OTHER | word | (c < 0x80 ? TEXT_PUNCTUATION : 0);
    }
}

/* NFC may touch c when c combines, when c itself is not NFC, and when c is a later part of any
 * canonical decomposition (then it may be composed with what is before it). */
static void mark_unstable(uint8_t *all, uint32_t limit) {
    for (uint32_t c = 0x300; c < limit; c++) {
        const utf8proc_property_t *property = utf8proc_get_property((utf8proc_int32_t)c);
        if (property->combining_class) all[c] |= TEXT_UNSTABLE;
        utf8proc_int32_t parts[16];
        int boundary = 0;
        utf8proc_ssize_t count =
            utf8proc_decompose_char((utf8proc_int32_t)c, parts, 16, UTF8PROC_DECOMPOSE, &boundary);
        if (count < 1 || count > 16 || (count == 1 && parts[0] == (utf8proc_int32_t)c)) continue;
        for (utf8proc_ssize_t i = 1; i < count; i++) all[parts[i]] |= TEXT_UNSTABLE;
        count = utf8proc_normalize_utf32(parts, count, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
        if (count != 1 || parts[0] != (utf8proc_int32_t)c) all[c] |= TEXT_UNSTABLE;
    }
    MARK(all, unknown_marks, (uint8_t)~TEXT_UNSTABLE, TEXT_BARRIER);
}

sifr_status text_unicode_build(text_unicode *unicode, bool with_nfc, sifr_error *error) {
    uint8_t *all;
    *unicode = (text_unicode){.normalizes = with_nfc};
    BASE_TRY(base_alloc(0x110000, 1, &all, error));
    for (uint32_t c = 0; c < LAST_PLANES; c++) all[c] = class_of(c);
    for (uint32_t c = TAGS; c < 0x110000; c++) all[c] = class_of(c);
    MARK(all, new_letters, 0, TEXT_LETTER | TEXT_WORD);
    MARK(all, new_numbers, 0, TEXT_NUMBER | TEXT_WORD);
    text_unicode_correct(all);
    if (with_nfc) mark_unstable(all, LAST_PLANES);
    size_t count = 0, capacity = 0;
    sifr_status status = SIFR_OK;
    for (size_t page = 0; page < 4352; page++) {
        size_t same = 0;
        while (same < count && memcmp(unicode->flags + same * 256, all + page * 256, 256) != 0)
            same++;
        if (same == count) {
            BASE_TRY_GOTO(status,
                          base_grow(&unicode->flags, &capacity, count * 256 + 256, 1, error), done);
            memcpy(unicode->flags + 256 * count++, all + page * 256, 256);
        }
        unicode->pages[page] = (uint16_t)same;
    }
done:
    free(all);
    return status;
}

void text_unicode_free(text_unicode *unicode) {
    free(unicode->flags);
    unicode->flags = NULL;
}

size_t text_utf8_check(const uint8_t *p, const uint8_t *end, size_t *skip, bool *cut) {
    uint8_t first = *p, low = 0x80, high = 0xBF;
    size_t length;
    *skip = 1;
    *cut = false;
    if (first < 0x80) return 1;
    if (first < 0xC2 || first > 0xF4) return 0;
    length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
    for (size_t i = 1; i < length; i++) {
        if (p + i == end) return *cut = true, *skip = i, 0;
        if (p[i] < low || p[i] > high) return *skip = i, 0;
        low = 0x80, high = 0xBF;
    }
    return length;
}

size_t text_utf8_valid(const uint8_t *text, size_t size) {
    const uint8_t *p = text, *end = text + size;
    while (p < end) {
        uint64_t block;
        size_t skip;
        bool cut;
        if (end - p >= 8 && (memcpy(&block, p, 8), !(block & 0x8080808080808080u))) {
            p += 8;
            continue;
        }
        size_t length = text_utf8_check(p, end, &skip, &cut);
        if (!length) break;
        p += length;
    }
    return (size_t)(p - text);
}
