/* Sets of code points for the regular expressions. */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/heap.h"
#include "text/tokenizer/tokenizer_regex_internal.h"
#include "text/tokenizer/tokenizer_unicode.h"

enum { CLASSES_AT_MOST = 64, WRITTEN_AT_MOST = 256 };

uint32_t text_regex_kinds(const char *name, size_t size) {
    static const char *const names[] = {"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd",
                                        "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm",
                                        "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};
    uint32_t bits = 0;
    if (size < 1 || size > 2) return 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (memcmp(names[i], name, size) == 0) bits |= 1u << i;
    }
    return bits;
}

static const uint32_t han[][2] = {
    {0x2E80, 0x2E99},   {0x2E9B, 0x2EF3},   {0x2F00, 0x2FD5},   {0x3005, 0x3005},
    {0x3007, 0x3007},   {0x3021, 0x3029},   {0x3038, 0x303B},   {0x3400, 0x4DBF},
    {0x4E00, 0x9FFF},   {0xF900, 0xFA6D},   {0xFA70, 0xFAD9},   {0x16FE2, 0x16FE3},
    {0x16FF0, 0x16FF1}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B739}, {0x2B740, 0x2B81D},
    {0x2B820, 0x2CEA1}, {0x2CEB0, 0x2EBE0}, {0x2EBF0, 0x2EE5D}, {0x2F800, 0x2FA1D},
    {0x30000, 0x3134A}, {0x31350, 0x323AF},
};

static bool is_han(uint32_t c) {
    for (size_t i = 0; i < sizeof han / sizeof *han; i++) {
        if (c >= han[i][0] && c <= han[i][1]) return true;
    }
    return false;
}

/* What items that are no ranges ask of a code point. */
enum { KIND = 31, WORD = 32, SPACE = 64, HAN = 128 };

static uint8_t signature(uint32_t c) {
    bool word = (c != 0x200C && c != 0x200D && text_unicode_is_word(c)) || c == 0xB2 || c == 0xB3 ||
                c == 0xB9 || (c >= 0xBC && c <= 0xBE);
    return (uint8_t)(text_unicode_kind(c) | (word ? WORD : 0) |
                     (text_unicode_is_space(c) ? SPACE : 0) | (is_han(c) ? HAN : 0));
}

/* Nothing is assigned in most planes: one character stands for its page. */
static bool is_alike(uint32_t page) {
    return page >= 0x400 && page >> 1 != 0x700 && (page & 255) != 255;
}

/* Of all code points, made for the first class that asks. */
static sifr_status sign(text_regex *regex, sifr_error *error) {
    if (regex->draft.signatures) return SIFR_OK;
    BASE_TRY(base_alloc(0x110000, 1, &regex->draft.signatures, error));
    for (uint32_t page = 0; page < 4352; page++) {
        uint8_t *out = regex->draft.signatures + (page << 8);
        for (uint32_t i = 0; i < (is_alike(page) ? 1 : 256); i++) out[i] = signature(page << 8 | i);
        if (is_alike(page)) memset(out, out[0], 256);
    }
    return SIFR_OK;
}

static bool item_has(const text_regex_item *item, uint32_t c, uint8_t signs) {
    switch (item->what) {
    case TEXT_ITEM_RANGE:
        return c >= item->low && c <= item->high;
    case TEXT_ITEM_KINDS:
        return item->low >> (signs & KIND) & 1;
    case TEXT_ITEM_SPACE:
        return signs & SPACE;
    case TEXT_ITEM_WORD:
        return signs & WORD;
    case TEXT_ITEM_HAN:
        return signs & HAN;
    default:
        return false;
    }
}

/* Whether c is in the class that items[*at], an OPEN, begins; *at moves to its CLOSE. */
static bool class_has(const text_regex_item *items, size_t *at, uint32_t c, uint8_t signs) {
    bool negated = items[*at].negated, found = false;
    for (++*at; items[*at].what != TEXT_ITEM_CLOSE; ++*at) {
        if (items[*at].what == TEXT_ITEM_OPEN)
            found |= class_has(items, at, c, signs);
        else
            found |= item_has(&items[*at], c, signs) != items[*at].negated;
    }
    return found != negated;
}

/* The other spellings of c, itself among them: simple case folding. */
static size_t spellings(uint32_t c, uint32_t out[5]) {
    size_t count = 0;
    utf8proc_int32_t low = utf8proc_tolower((utf8proc_int32_t)c);
    out[count++] = c;
    out[count++] = (uint32_t)low;
    out[count++] = (uint32_t)utf8proc_toupper((utf8proc_int32_t)c);
    out[count++] = (uint32_t)utf8proc_totitle((utf8proc_int32_t)c);
    if (low == 's' || c == 0x17F) out[count++] = c == 0x17F ? 's' : 0x17F;
    if (low == 'k') out[count++] = 0x212A;
    if (low == 0xE5) out[count++] = 0x212B;
    return count;
}

/* The items with the other spellings of the characters that stand in them. */
static sifr_status fold(const text_regex_item *items, size_t count, text_regex_item **out,
                        size_t *out_count, sifr_error *error) {
    size_t capacity = 0, used = 0;
    text_regex_item *all = NULL;
    sifr_status status = SIFR_OK;
    for (size_t i = 0; i < count; i++) {
        BASE_TRY_GOTO(status, base_grow(&all, &capacity, used + 1, sizeof *all, error), fail);
        all[used++] = items[i];
        if (items[i].what != TEXT_ITEM_RANGE || items[i].high - items[i].low > 0x1000) continue;
        for (uint32_t c = items[i].low; c <= items[i].high; c++) {
            uint32_t other[8];
            size_t others = spellings(c, other);
            for (size_t k = 1; k < others; k++) {
                if (other[k] >= items[i].low && other[k] <= items[i].high) continue;
                BASE_TRY_GOTO(status, base_grow(&all, &capacity, used + 1, sizeof *all, error),
                              fail);
                all[used++] =
                    (text_regex_item){TEXT_ITEM_RANGE, items[i].negated, other[k], other[k]};
            }
        }
    }
    *out = all;
    *out_count = used;
    return SIFR_OK;
fail:
    free(all);
    return status;
}

/* What stands in no range depends on its signature alone. */
#define OUTSIDE 0x110000u

/* What the ranges have of a page. */
typedef enum overlap { NONE, WHOLE, PART } overlap;

static overlap range_overlap(const text_regex_item *items, size_t count, uint32_t page) {
    uint32_t first = page << 8, last = first + 255;
    overlap most = NONE;
    for (size_t i = 0; i < count; i++) {
        const text_regex_item *range = &items[i];
        if (range->what != TEXT_ITEM_RANGE || range->low > last || range->high < first) continue;
        if (range->low > first || range->high < last) return PART;
        most = WHOLE;
    }
    return most;
}

/* The bits of a page. `by_signature`: of characters that no range has. */
static void fill_page(const text_regex *regex, const text_regex_item *items, size_t count,
                      const bool by_signature[256], uint32_t page, uint64_t bits[4]) {
    const uint8_t *signs = regex->draft.signatures + (page << 8);
    overlap ranges = range_overlap(items, count, page);
    bool one_for_all = ranges != PART && is_alike(page);
    memset(bits, 0, 4 * sizeof *bits);
    for (uint32_t i = 0; i < (one_for_all ? 1 : 256); i++) {
        size_t at = 0;
        bool has = ranges != NONE ? class_has(items, &at, page << 8 | i, signs[i])
                                  : by_signature[signs[i]];
        if (has) bits[i >> 6] |= (uint64_t)1 << (i & 63);
    }
    if (one_for_all && bits[0]) memset(bits, 0xFF, 4 * sizeof *bits);
}

static sifr_status add_page(text_regex *regex, const uint64_t page[4], uint16_t *index,
                            sifr_error *error) {
    size_t same = 0;
    while (same < regex->bit_count && memcmp(regex->bits[same], page, sizeof *regex->bits) != 0)
        same++;
    *index = (uint16_t)same;
    if (same < regex->bit_count) return SIFR_OK;
    BASE_TRY(base_grow(&regex->bits, &regex->bit_capacity, same + 1, sizeof *regex->bits, error));
    memcpy(regex->bits[same], page, sizeof *regex->bits);
    regex->bit_count++;
    return SIFR_OK;
}

static bool same_item(const text_regex_item *a, const text_regex_item *b) {
    return a->what == b->what && a->negated == b->negated && a->low == b->low && a->high == b->high;
}

static const text_regex_written *find_written(const text_regex_draft *draft,
                                              const text_regex_item *items, size_t count,
                                              bool any_case) {
    for (size_t i = 0; i < draft->written_count; i++) {
        const text_regex_written *w = &draft->written[i];
        size_t same = 0;
        if (w->count != count || w->any_case != any_case) continue;
        while (same < count && same_item(&draft->items[w->begin + same], &items[same])) same++;
        if (same == count) return w;
    }
    return NULL;
}

static sifr_status keep_written(text_regex_draft *draft, const text_regex_item *items, size_t count,
                                bool any_case, uint32_t class, sifr_error *error) {
    BASE_TRY(base_grow(&draft->written, &draft->written_capacity, draft->written_count + 1,
                       sizeof *draft->written, error));
    BASE_TRY(base_grow(&draft->items, &draft->item_capacity, draft->item_count + count,
                       sizeof *draft->items, error));
    draft->written[draft->written_count++] =
        (text_regex_written){draft->item_count, count, any_case, class};
    memcpy(draft->items + draft->item_count, items, count * sizeof *items);
    draft->item_count += count;
    return SIFR_OK;
}

void text_regex_free_draft(text_regex *regex) {
    free(regex->draft.signatures);
    free(regex->draft.written);
    free(regex->draft.items);
    regex->draft = (text_regex_draft){0};
}

/* Makes the set, or finds that another description made the same one. */
static sifr_status make_class(text_regex *regex, const text_regex_item *items, size_t count,
                              uint32_t *index, sifr_error *error) {
    bool by_signature[256];
    BASE_TRY(sign(regex, error));
    if (regex->class_count >= CLASSES_AT_MOST)
        return base_fail(error, SIFR_USAGE, "more than %d different sets of characters",
                         CLASSES_AT_MOST);
    BASE_TRY(base_grow(&regex->classes, &regex->class_capacity, regex->class_count + 1,
                       sizeof *regex->classes, error));
    text_regex_class *class = &regex->classes[regex->class_count];
    for (int i = 0; i < 256; i++) {
        size_t at = 0;
        by_signature[i] = class_has(items, &at, OUTSIDE, (uint8_t)i);
    }
    for (uint32_t page = 0; page < 4352; page++) {
        uint64_t bits[4];
        fill_page(regex, items, count, by_signature, page, bits);
        if (page == 0) memcpy(class->ascii, bits, sizeof class->ascii);
        BASE_TRY(add_page(regex, bits, &class->pages[page], error));
    }
    for (uint32_t same = 0; same < regex->class_count; same++) {
        if (memcmp(&regex->classes[same], class, sizeof *class) == 0) {
            *index = same;
            return SIFR_OK;
        }
    }
    *index = (uint32_t)regex->class_count++;
    return SIFR_OK;
}

sifr_status text_regex_add_class(text_regex *regex, const text_regex_item *items, size_t count,
                                 bool any_case, uint32_t *index, sifr_error *error) {
    const text_regex_written *before = find_written(&regex->draft, items, count, any_case);
    text_regex_item *folded = NULL;
    size_t folded_count = count;
    if (before) {
        *index = before->class;
        return SIFR_OK;
    }
    if (regex->draft.written_count >= WRITTEN_AT_MOST)
        return base_fail(error, SIFR_USAGE, "more than %d ways to write a set of characters",
                         WRITTEN_AT_MOST);
    if (any_case) BASE_TRY(fold(items, count, &folded, &folded_count, error));
    sifr_status status = make_class(regex, folded ? folded : items, folded_count, index, error);
    free(folded);
    if (status == SIFR_OK)
        status = keep_written(&regex->draft, items, count, any_case, *index, error);
    return status;
}
