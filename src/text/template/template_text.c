/* Characters of UTF-8 texts, and what Python's str does with them. */
#include <utf8proc.h>

#include "text/template/template_internal.h"

/* ---- characters ---- */

/* The character at byte `at` < size, and its bytes; -1 with one byte where the text is not UTF-8.
 */
int32_t text_char(text_text text, size_t at, size_t *size) {
    const uint8_t *p = (const uint8_t *)text.bytes + at;
    size_t left = text.size - at;
    *size = 1;
    if (p[0] < 0x80) return p[0];
    size_t count = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (p[0] < 0xc2 || p[0] > 0xf4 || left < count) return -1;
    int32_t c = p[0] & (0x7f >> count);
    for (size_t i = 1; i < count; i++) {
        if ((p[i] & 0xc0) != 0x80) return -1;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < least[count] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return -1;
    *size = count;
    return c;
}

size_t text_char_put(int32_t c, char out[4]) {
    return (size_t)utf8proc_encode_char(c, (utf8proc_uint8_t *)out);
}

size_t text_char_count(text_text text) {
    size_t count = 0;
    for (size_t i = 0; i < text.size; i++) count += ((unsigned char)text.bytes[i] & 0xc0) != 0x80;
    return count;
}

/* As str.isspace. */
bool text_is_space(int32_t c) {
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

static bool among(int32_t c, text_text chars) {
    for (size_t at = 0, size; at < chars.size; at += size) {
        if (text_char(chars, at, &size) == c) return true;
    }
    return false;
}

static size_t last_char(text_text text) {
    size_t at = text.size - 1;
    while (at && ((unsigned char)text.bytes[at] & 0xc0) == 0x80) at--;
    return at;
}

/* Without whitespace, or without `chars`, at its ends. */
text_text text_strip(text_text text, const text_text *chars, bool left, bool right) {
    size_t size;
    while (left && text.size) {
        int32_t c = text_char(text, 0, &size);
        if (chars ? !among(c, *chars) : !text_is_space(c)) break;
        text.bytes += size;
        text.size -= size;
    }
    while (right && text.size) {
        size_t at = last_char(text);
        int32_t c = text_char(text, at, &size);
        if (chars ? !among(c, *chars) : !text_is_space(c)) break;
        text.size = at;
    }
    return text;
}

/* In linear time: memmem's. */
size_t text_find(text_text text, text_text part, size_t from) {
    if (from > text.size || part.size > text.size - from) return SIZE_MAX;
    if (part.size == 0) return from;
    const char *found = memmem(text.bytes + from, text.size - from, part.bytes, part.size);
    return found ? (size_t)(found - text.bytes) : SIZE_MAX;
}

/* str.replace; `most` < 0: all. An empty `from` matches before every character and at the end. */
sifr_status text_template_replace(text_render *r, text_text text, text_text from, text_text to,
                                  int64_t most, text_text *out) {
    text_builder b = {0};
    size_t at = 0, size;
    while (most != 0) {
        size_t found = text_find(text, from, at);
        if (found == SIZE_MAX) break;
        BASE_TRY(text_build(r, &b, text.bytes + at, found - at));
        BASE_TRY(text_build(r, &b, to.bytes, to.size));
        at = found + from.size;
        most -= most > 0;
        if (from.size) continue;
        if (at == text.size) break;
        (void)text_char(text, at, &size);
        BASE_TRY(text_build(r, &b, text.bytes + at, size));
        at += size;
    }
    BASE_TRY(text_build(r, &b, text.bytes + at, text.size - at));
    *out = text_built(&b);
    return SIFR_OK;
}

/* ---- upper and lower case ---- */

static bool is_cased(int32_t c) {
    utf8proc_category_t kind = utf8proc_category(c);
    return kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LL ||
           kind == UTF8PROC_CATEGORY_LT;
}

/* Characters that become several, in upper case and in title case. */
static const struct {
    int32_t from;
    const char *upper, *title;
} special[] = {{0xdf, "SS", "Ss"},   {0x149, "ʼN", "ʼN"},    {0x1f0, "J̌", "J̌"},
               {0x587, "ԵՒ", "Եւ"},  {0xfb00, "FF", "Ff"},   {0xfb01, "FI", "Fi"},
               {0xfb02, "FL", "Fl"}, {0xfb03, "FFI", "Ffi"}, {0xfb04, "FFL", "Ffl"},
               {0xfb05, "ST", "St"}, {0xfb06, "ST", "St"},   {0x1e96, "H̱", "H̱"},
               {0x1e97, "T̈", "T̈"},   {0x1e98, "W̊", "W̊"},     {0x1e99, "Y̊", "Y̊"},
               {0x390, "Ϊ́", "Ϊ́"},    {0x3b0, "Ϋ́", "Ϋ́"}};

static sifr_status build_char(text_render *r, text_builder *b, int32_t c) {
    char bytes[4];
    return text_build(r, b, bytes, text_char_put(c, bytes));
}

static sifr_status build_upper(text_render *r, text_builder *b, int32_t c, bool title) {
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        if (special[i].from != c) continue;
        const char *text = title ? special[i].title : special[i].upper;
        return text_build(r, b, text, strlen(text));
    }
    if ((c >= 0x1f50 && c <= 0x1ffc) || (c >= 0xfb13 && c <= 0xfb17))
        return text_template_fail(&r->place, "upper case of U+%04X is not supported", (unsigned)c);
    return build_char(r, b, title ? utf8proc_totitle(c) : utf8proc_toupper(c));
}

/* A sigma at the end of a word has a form of its own. */
static bool final_sigma(text_text text, size_t at, size_t size) {
    size_t ignored;
    bool before = false, after = false;
    if (at) {
        text_text head = {text.bytes, at};
        before = is_cased(text_char(head, last_char(head), &ignored));
    }
    if (at + size < text.size) after = is_cased(text_char(text, at + size, &ignored));
    return before && !after;
}

static sifr_status build_lower(text_render *r, text_builder *b, text_text text, size_t at,
                               size_t size, int32_t c) {
    if (c == 0x3a3 && final_sigma(text, at, size)) return build_char(r, b, 0x3c2);
    if (c == 0x130) return text_build(r, b, "i̇", strlen("i̇"));
    return build_char(r, b, utf8proc_tolower(c));
}

static bool begins_word(int32_t before) {
    return before == '-' || before == '(' || before == '{' || before == '[' || before == '<' ||
           text_is_space(before);
}

sifr_status text_change_case(text_render *r, text_text text, text_case how, text_text *out) {
    text_builder b = {0};
    int32_t before = -1;
    for (size_t at = 0, size; at < text.size; at += size) {
        int32_t c = text_char(text, at, &size);
        bool first = before < 0;
        bool title = (how == TEXT_CAPITALIZE && first) ||
                     (how == TEXT_TITLE && (first || !is_cased(before)));
        bool upper =
            how == TEXT_UPPER || (how == TEXT_TITLE_FILTER && (first || begins_word(before)));
        if (title || upper)
            BASE_TRY(build_upper(r, &b, c, title));
        else
            BASE_TRY(build_lower(r, &b, text, at, size, c));
        before = c;
    }
    *out = text_built(&b);
    return SIFR_OK;
}

bool text_is_case(text_text text, bool upper) {
    bool any = false;
    for (size_t at = 0, size; at < text.size; at += size) {
        int32_t c = text_char(text, at, &size);
        if (!is_cased(c)) continue;
        if (utf8proc_category(c) != (upper ? UTF8PROC_CATEGORY_LU : UTF8PROC_CATEGORY_LL))
            return false;
        any = true;
    }
    return any;
}

/* ---- lines and slices ---- */

static bool ends_line(int32_t c) {
    return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

sifr_status text_splitlines(text_render *r, text_text text, bool keep, text_value *out) {
    size_t begin = 0, size;
    BASE_TRY(text_template_charge(r, text.size / 16));
    BASE_TRY(text_new_items(r, TEXT_LIST, 0, out));
    for (size_t at = 0; at < text.size;) {
        int32_t c = text_char(text, at, &size);
        size_t end = at;
        at += size;
        if (!ends_line(c)) {
            if (at < text.size) continue;
            end = at;
        } else if (c == '\r' && at < text.size && text.bytes[at] == '\n') {
            at++;
        }
        text_text line = {text.bytes + begin, (keep ? at : end) - begin};
        BASE_TRY(text_append(r, out->items, text_of_text(line)));
        begin = at;
    }
    return SIFR_OK;
}

typedef struct slice {
    int64_t start, stop, step, count;
} slice;

static sifr_status slice_bound(text_render *r, text_value v, int64_t length, int64_t least,
                               int64_t most, int64_t fallback, int64_t *out) {
    *out = fallback;
    if (v.kind == TEXT_ABSENT || v.kind == TEXT_NONE) return SIFR_OK;
    BASE_TRY(text_want_int(r, v, "a bound of a slice", out));
    if (*out < 0) *out = *out < -length ? least : *out + length < least ? least : *out + length;
    if (*out > most) *out = most;
    return SIFR_OK;
}

static sifr_status slice_of(text_render *r, const text_value bounds[3], int64_t length, slice *s) {
    s->step = 1;
    if (bounds[2].kind != TEXT_ABSENT && bounds[2].kind != TEXT_NONE)
        BASE_TRY(text_want_int(r, bounds[2], "the step of a slice", &s->step));
    if (s->step == 0) return text_template_fail(&r->place, "the step of a slice is 0");
    bool back = s->step < 0;
    int64_t least = back ? -1 : 0, most = back ? length - 1 : length;
    BASE_TRY(slice_bound(r, bounds[0], length, least, most, back ? most : 0, &s->start));
    BASE_TRY(slice_bound(r, bounds[1], length, least, most, back ? -1 : length, &s->stop));
    s->count = 0;
    if (!back && s->start < s->stop) s->count = (s->stop - s->start - 1) / s->step + 1;
    if (back && s->stop < s->start)
        s->count = s->step < -length ? 1 : (s->start - s->stop - 1) / -s->step + 1;
    return SIFR_OK;
}

static sifr_status slice_items(text_render *r, text_value v, const text_value bounds[3],
                               text_value *out) {
    slice s;
    BASE_TRY(slice_of(r, bounds, (int64_t)v.items->count, &s));
    BASE_TRY(text_new_items(r, v.kind, (size_t)s.count, out));
    for (int64_t i = 0; i < s.count; i++)
        BASE_TRY(text_append(r, out->items, v.items->values[s.start + i * s.step]));
    return SIFR_OK;
}

static sifr_status slice_text(text_render *r, text_text text, const text_value bounds[3],
                              text_value *out) {
    slice s;
    text_builder b = {0};
    size_t *places, count = text_char_count(text), used = 0;
    BASE_TRY(slice_of(r, bounds, (int64_t)count, &s));
    BASE_TRY(TEXT_TAKE(r, count + 1, sizeof *places, &places));
    BASE_TRY(text_template_charge(r, count / 16));
    for (size_t at = 0, size; at < text.size; at += size) {
        places[used++] = at;
        (void)text_char(text, at, &size);
    }
    places[used] = text.size;
    if (s.step == 1 && s.count > 0) { /* a part of the same bytes */
        size_t begin = places[s.start];
        *out = text_of_text((text_text){text.bytes + begin, places[s.start + s.count] - begin});
        return SIFR_OK;
    }
    for (int64_t i = 0; i < s.count; i++) {
        size_t at = places[s.start + i * s.step];
        BASE_TRY(text_build(r, &b, text.bytes + at, places[s.start + i * s.step + 1] - at));
        BASE_TRY(text_template_charge(r, 1));
    }
    *out = text_of_text(text_built(&b));
    return SIFR_OK;
}

sifr_status text_slice(text_render *r, text_value v, const text_value bounds[3], text_value *out) {
    if (v.kind == TEXT_STRING) return slice_text(r, v.text, bounds, out);
    if (v.kind == TEXT_LIST || v.kind == TEXT_TUPLE || v.kind == TEXT_RANGE)
        return slice_items(r, v, bounds, out);
    return text_template_fail(&r->place, "a value of type %s cannot be sliced", text_kind_name(v));
}
