/* Methods of strings, dicts and lists. What would change a dict or list is refused by the sandbox.
 */
#include <utf8proc.h>

#include "text/template/template_internal.h"

#define METHOD(name)                                                                               \
    static sifr_status name(text_render *r, text_value self, const text_value *arguments,          \
                            text_value *out)

static bool given(text_value v) {
    return v.kind != TEXT_ABSENT && v.kind != TEXT_NONE;
}

static sifr_status text_result(text_text text, text_value *out) {
    *out = text_of_text(text);
    return SIFR_OK;
}

/* ---- strings ---- */

static sifr_status strip(text_render *r, text_value self, const text_value *arguments, bool left,
                         bool right, text_value *out) {
    text_text chars;
    bool some = given(arguments[0]);
    if (some) BASE_TRY(text_want_text(r, arguments[0], "what is stripped", &chars));
    BASE_TRY(text_template_charge_all(r, some ? chars.size + 1 : 1, self.text.size));
    return text_result(text_strip(self.text, some ? &chars : NULL, left, right), out);
}

METHOD(method_strip) {
    return strip(r, self, arguments, true, true, out);
}

METHOD(method_lstrip) {
    return strip(r, self, arguments, true, false, out);
}

METHOD(method_rstrip) {
    return strip(r, self, arguments, false, true, out);
}

static sifr_status change_case(text_render *r, text_value self, text_case how, text_value *out) {
    text_text text;
    BASE_TRY(text_change_case(r, self.text, how, &text));
    return text_result(text, out);
}

METHOD(method_upper) {
    (void)arguments;
    return change_case(r, self, TEXT_UPPER, out);
}

METHOD(method_lower) {
    (void)arguments;
    return change_case(r, self, TEXT_LOWER, out);
}

METHOD(method_title) {
    (void)arguments;
    return change_case(r, self, TEXT_TITLE, out);
}

METHOD(method_capitalize) {
    (void)arguments;
    return change_case(r, self, TEXT_CAPITALIZE, out);
}

static bool begins(text_text text, text_text part, bool at_end) {
    if (part.size > text.size) return false;
    size_t at = at_end ? text.size - part.size : 0;
    return part.size == 0 || memcmp(text.bytes + at, part.bytes, part.size) == 0;
}

/* startswith and endswith take a string or a tuple of them. */
static sifr_status begins_any(text_render *r, text_value self, text_value part, bool at_end,
                              text_value *out) {
    text_text text;
    *out = text_of_bool(false);
    if (part.kind != TEXT_TUPLE) {
        BASE_TRY(text_want_text(r, part, "what a string begins or ends with", &text));
        BASE_TRY(text_template_charge(r, text.size / 64));
        *out = text_of_bool(begins(self.text, text, at_end));
        return SIFR_OK;
    }
    for (size_t i = 0; i < part.items->count; i++) {
        BASE_TRY(
            text_want_text(r, part.items->values[i], "what a string begins or ends with", &text));
        BASE_TRY(text_template_charge(r, text.size / 64));
        if (begins(self.text, text, at_end)) *out = text_of_bool(true);
    }
    return SIFR_OK;
}

METHOD(method_startswith) {
    return begins_any(r, self, arguments[0], false, out);
}

METHOD(method_endswith) {
    return begins_any(r, self, arguments[0], true, out);
}

METHOD(method_zfill) {
    int64_t width;
    text_builder b = {0};
    BASE_TRY(text_want_int(r, arguments[0], "zfill's width", &width));
    size_t sign = self.text.size && (self.text.bytes[0] == '-' || self.text.bytes[0] == '+');
    int64_t zeros = width - (int64_t)text_char_count(self.text);
    BASE_TRY(text_build(r, &b, self.text.bytes, sign));
    if (zeros > 0) BASE_TRY(text_build_repeated(r, &b, text_literal("0"), zeros));
    BASE_TRY(text_build(r, &b, self.text.bytes + sign, self.text.size - sign));
    return text_result(text_built(&b), out);
}

METHOD(method_removeprefix) {
    text_text part;
    BASE_TRY(text_want_text(r, arguments[0], "removeprefix's prefix", &part));
    BASE_TRY(text_template_charge(r, part.size / 64));
    *out = self;
    if (!begins(self.text, part, false)) return SIFR_OK;
    return text_result((text_text){self.text.bytes + part.size, self.text.size - part.size}, out);
}

METHOD(method_removesuffix) {
    text_text part;
    BASE_TRY(text_want_text(r, arguments[0], "removesuffix's suffix", &part));
    BASE_TRY(text_template_charge(r, part.size / 64));
    *out = self;
    if (!begins(self.text, part, true)) return SIFR_OK;
    return text_result((text_text){self.text.bytes, self.text.size - part.size}, out);
}

METHOD(method_replace) {
    text_text from, to, text;
    int64_t count = -1;
    BASE_TRY(text_want_text(r, arguments[0], "what replace looks for", &from));
    BASE_TRY(text_want_text(r, arguments[1], "what replace puts", &to));
    if (arguments[2].kind != TEXT_ABSENT)
        BASE_TRY(text_want_int(r, arguments[2], "replace's count", &count));
    BASE_TRY(text_template_replace(r, self.text, from, to, count, &text));
    return text_result(text, out);
}

METHOD(method_join) {
    text_items *items;
    text_builder b = {0};
    BASE_TRY(text_iterate(r, arguments[0], &items));
    for (size_t i = 0; i < items->count; i++) {
        text_text text;
        BASE_TRY(text_want_text(r, items->values[i], "what join joins", &text));
        if (i) BASE_TRY(text_build(r, &b, self.text.bytes, self.text.size));
        BASE_TRY(text_build(r, &b, text.bytes, text.size));
        BASE_TRY(text_template_charge(r, 1));
    }
    return text_result(text_built(&b), out);
}

/* ---- splitting ---- */

static sifr_status append_text(text_render *r, text_value list, const char *begin,
                               const char *end) {
    text_text text = {begin, (size_t)(end - begin)};
    return text_append(r, list.items, text_of_text(text));
}

/* Words between whitespace, at most `most` splits; the rest keeps its inner and last blanks. */
static sifr_status split_words(text_render *r, text_text text, int64_t most, text_value *out) {
    BASE_TRY(text_new_items(r, TEXT_LIST, 0, out));
    for (;;) {
        size_t end = 0, size;
        text = text_strip(text, NULL, true, false);
        if (text.size == 0) return SIFR_OK;
        if (most == 0) return append_text(r, *out, text.bytes, text.bytes + text.size);
        while (end < text.size && !text_is_space(text_char(text, end, &size))) end += size;
        BASE_TRY(append_text(r, *out, text.bytes, text.bytes + end));
        text.bytes += end;
        text.size -= end;
        most -= most > 0;
    }
}

static void turn(text_items *items) {
    for (size_t i = 0, j = items->count; i + 1 < j; i++) {
        text_value swap = items->values[i];
        items->values[i] = items->values[--j];
        items->values[j] = swap;
    }
}

static sifr_status rsplit_words(text_render *r, text_text text, int64_t most, text_value *out) {
    BASE_TRY(text_new_items(r, TEXT_LIST, 0, out));
    for (;; most -= most > 0) {
        text = text_strip(text, NULL, false, true);
        if (text.size == 0) break;
        size_t at = text.size, size;
        while (most != 0 && at > 0) {
            size_t before = at - 1;
            while (before && ((unsigned char)text.bytes[before] & 0xc0) == 0x80) before--;
            if (text_is_space(text_char(text, before, &size))) break;
            at = before;
        }
        if (most == 0) at = 0;
        BASE_TRY(append_text(r, *out, text.bytes + at, text.bytes + text.size));
        text.size = at;
    }
    turn(out->items);
    return SIFR_OK;
}

/* The last place of `part` in text; SIZE_MAX: none. */
static size_t find_last(text_text text, text_text part) {
    if (part.size > text.size) return SIZE_MAX;
    for (size_t at = text.size - part.size + 1; at-- > 0;) {
        if (part.size == 0 || memcmp(text.bytes + at, part.bytes, part.size) == 0) return at;
    }
    return SIZE_MAX;
}

static sifr_status split_at(text_render *r, text_text text, text_text by, int64_t most, bool right,
                            text_value *out) {
    BASE_TRY(text_new_items(r, TEXT_LIST, 0, out));
    if (by.size == 0) return text_template_fail(&r->place, "split at an empty string");
    BASE_TRY(text_template_charge(r, text.size / 16));
    if (right) BASE_TRY(text_template_charge_all(r, text.size, by.size));
    for (; most != 0; most -= most > 0) {
        size_t at = right ? find_last(text, by) : text_find(text, by, 0);
        if (at == SIZE_MAX) break;
        const char *end = text.bytes + text.size, *behind = text.bytes + at + by.size;
        if (right) {
            BASE_TRY(append_text(r, *out, behind, end));
            text.size = at;
        } else {
            BASE_TRY(append_text(r, *out, text.bytes, text.bytes + at));
            text = (text_text){behind, (size_t)(end - behind)};
        }
    }
    BASE_TRY(text_append(r, out->items, text_of_text(text)));
    if (right) turn(out->items);
    return SIFR_OK;
}

static sifr_status split(text_render *r, text_value self, const text_value *arguments, bool right,
                         text_value *out) {
    int64_t most = -1;
    text_text by;
    if (arguments[1].kind != TEXT_ABSENT)
        BASE_TRY(text_want_int(r, arguments[1], "maxsplit", &most));
    if (!given(arguments[0])) {
        BASE_TRY(text_template_charge(r, self.text.size / 16));
        return (right ? rsplit_words : split_words)(r, self.text, most, out);
    }
    BASE_TRY(text_want_text(r, arguments[0], "what split looks for", &by));
    return split_at(r, self.text, by, most, right, out);
}

METHOD(method_split) {
    return split(r, self, arguments, false, out);
}

METHOD(method_rsplit) {
    return split(r, self, arguments, true, out);
}

METHOD(method_splitlines) {
    return text_splitlines(r, self.text, text_truth(arguments[0]), out);
}

static sifr_status partition(text_render *r, text_value self, text_value by, bool right,
                             text_value *out) {
    text_text part, text = self.text;
    BASE_TRY(text_want_text(r, by, "what partition looks for", &part));
    if (part.size == 0) return text_template_fail(&r->place, "partition at an empty string");
    BASE_TRY(text_template_charge_all(r, text.size, right ? part.size : 0));
    size_t at = right ? find_last(text, part) : text_find(text, part, 0);
    BASE_TRY(text_new_items(r, TEXT_TUPLE, 3, out));
    if (at == SIZE_MAX) {
        text_text none = {"", 0};
        BASE_TRY(text_append(r, out->items, text_of_text(right ? none : text)));
        BASE_TRY(text_append(r, out->items, text_of_text(none)));
        return text_append(r, out->items, text_of_text(right ? text : none));
    }
    const char *behind = text.bytes + at + part.size;
    BASE_TRY(append_text(r, *out, text.bytes, text.bytes + at));
    BASE_TRY(text_append(r, out->items, text_of_text(part)));
    return append_text(r, *out, behind, text.bytes + text.size);
}

METHOD(method_partition) {
    return partition(r, self, arguments[0], false, out);
}

METHOD(method_rpartition) {
    return partition(r, self, arguments[0], true, out);
}

/* ---- searching ---- */

static sifr_status find_text(text_render *r, text_value self, text_value part, bool right,
                             int64_t *out) {
    text_text text;
    BASE_TRY(text_want_text(r, part, "what is looked for", &text));
    BASE_TRY(text_template_charge_all(r, self.text.size, right ? text.size : 0));
    size_t at = right ? find_last(self.text, text) : text_find(self.text, text, 0);
    *out = at == SIZE_MAX ? -1 : (int64_t)text_char_count((text_text){self.text.bytes, at});
    return SIFR_OK;
}

static sifr_status find_place(text_render *r, text_value self, text_value part, bool right,
                              bool must, text_value *out) {
    int64_t at;
    BASE_TRY(find_text(r, self, part, right, &at));
    if (at < 0 && must) return text_template_fail(&r->place, "index: the text is not there");
    *out = text_of_int(at);
    return SIFR_OK;
}

METHOD(method_find) {
    return find_place(r, self, arguments[0], false, false, out);
}

METHOD(method_rfind) {
    return find_place(r, self, arguments[0], true, false, out);
}

METHOD(method_index) {
    return find_place(r, self, arguments[0], false, true, out);
}

METHOD(method_rindex) {
    return find_place(r, self, arguments[0], true, true, out);
}

METHOD(method_count) {
    text_text part;
    int64_t count = 0;
    BASE_TRY(text_want_text(r, arguments[0], "what is counted", &part));
    BASE_TRY(text_template_charge(r, self.text.size / 16));
    if (part.size == 0) count = (int64_t)text_char_count(self.text) + 1;
    for (size_t at = 0; part.size && (at = text_find(self.text, part, at)) != SIZE_MAX;
         at += part.size)
        count++;
    *out = text_of_int(count);
    return SIFR_OK;
}

/* ---- questions about all characters ---- */

static bool is_letter(int32_t c) {
    utf8proc_category_t kind = utf8proc_category(c);
    return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

static bool is_decimal(int32_t c) {
    return utf8proc_category(c) == UTF8PROC_CATEGORY_ND || c == 0xb2 || c == 0xb3 || c == 0xb9;
}

static bool is_letter_or_number(int32_t c) {
    utf8proc_category_t kind = utf8proc_category(c);
    return is_letter(c) || (kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO);
}

static sifr_status all(text_render *r, text_text text, bool (*is)(int32_t c), text_value *out) {
    bool truth = text.size > 0;
    for (size_t at = 0, size; truth && at < text.size; at += size)
        truth = is(text_char(text, at, &size));
    *out = text_of_bool(truth);
    return text_template_charge(r, text.size / 16);
}

METHOD(method_isalpha) {
    (void)arguments;
    return all(r, self.text, is_letter, out);
}

METHOD(method_isdigit) {
    (void)arguments;
    return all(r, self.text, is_decimal, out);
}

METHOD(method_isalnum) {
    (void)arguments;
    return all(r, self.text, is_letter_or_number, out);
}

METHOD(method_isspace) {
    (void)arguments;
    return all(r, self.text, text_is_space, out);
}

METHOD(method_isupper) {
    (void)arguments;
    *out = text_of_bool(text_is_case(self.text, true));
    return text_template_charge(r, self.text.size / 16);
}

METHOD(method_islower) {
    (void)arguments;
    *out = text_of_bool(text_is_case(self.text, false));
    return text_template_charge(r, self.text.size / 16);
}

/* ---- dicts and lists ---- */

static sifr_status view(text_render *r, text_value self, bool keys, bool values, text_value *out) {
    const text_dict *dict = self.dict;
    BASE_TRY(text_new_items(r, TEXT_VIEW, dict->count, out));
    for (size_t i = 0; i < dict->count; i++) {
        text_value v = keys ? dict->keys[i] : dict->values[i];
        if (keys && values) BASE_TRY(text_pair(r, dict->keys[i], dict->values[i], &v));
        BASE_TRY(text_append(r, out->items, v));
    }
    return SIFR_OK;
}

METHOD(method_items) {
    (void)arguments;
    return view(r, self, true, true, out);
}

METHOD(method_keys) {
    (void)arguments;
    return view(r, self, true, false, out);
}

METHOD(method_values) {
    (void)arguments;
    return view(r, self, false, true, out);
}

METHOD(method_get) {
    bool found;
    *out = arguments[1].kind == TEXT_ABSENT ? text_none() : arguments[1];
    return text_dict_get(r, self.dict, arguments[0], &found, out);
}

METHOD(method_list_index) {
    for (size_t i = 0; i < self.items->count; i++) {
        bool equal;
        BASE_TRY(text_equal(r, self.items->values[i], arguments[0], &equal));
        if (!equal) continue;
        *out = text_of_int((int64_t)i);
        return SIFR_OK;
    }
    return text_template_fail(&r->place, "index: the value is not in the list");
}

METHOD(method_list_count) {
    int64_t count = 0;
    for (size_t i = 0; i < self.items->count; i++) {
        bool equal;
        BASE_TRY(text_equal(r, self.items->values[i], arguments[0], &equal));
        count += equal;
    }
    *out = text_of_int(count);
    return SIFR_OK;
}

/* Methods without a function are known, and refused where they are called. */
static const text_builtin string_methods[] = {
    {"capitalize", NULL, 0, method_capitalize, NULL},
    {"count", "sub", 1, method_count, NULL},
    {"endswith", "suffix", 1, method_endswith, NULL},
    {"find", "sub", 1, method_find, NULL},
    {"index", "sub", 1, method_index, NULL},
    {"isalnum", NULL, 0, method_isalnum, NULL},
    {"isalpha", NULL, 0, method_isalpha, NULL},
    {"isdigit", NULL, 0, method_isdigit, NULL},
    {"islower", NULL, 0, method_islower, NULL},
    {"isspace", NULL, 0, method_isspace, NULL},
    {"isupper", NULL, 0, method_isupper, NULL},
    {"join", "iterable", 1, method_join, NULL},
    {"lower", NULL, 0, method_lower, NULL},
    {"lstrip", "chars", 0, method_lstrip, NULL},
    {"partition", "sep", 1, method_partition, NULL},
    {"removeprefix", "prefix", 1, method_removeprefix, NULL},
    {"removesuffix", "suffix", 1, method_removesuffix, NULL},
    {"replace", "old new count", 2, method_replace, NULL},
    {"rfind", "sub", 1, method_rfind, NULL},
    {"rindex", "sub", 1, method_rindex, NULL},
    {"rpartition", "sep", 1, method_rpartition, NULL},
    {"rsplit", "sep maxsplit", 0, method_rsplit, NULL},
    {"rstrip", "chars", 0, method_rstrip, NULL},
    {"split", "sep maxsplit", 0, method_split, NULL},
    {"splitlines", "keepends", 0, method_splitlines, NULL},
    {"startswith", "prefix", 1, method_startswith, NULL},
    {"strip", "chars", 0, method_strip, NULL},
    {"title", NULL, 0, method_title, NULL},
    {"upper", NULL, 0, method_upper, NULL},
    {"casefold", NULL, 0, NULL, NULL},
    {"center", NULL, 0, NULL, NULL},
    {"encode", NULL, 0, NULL, NULL},
    {"expandtabs", NULL, 0, NULL, NULL},
    {"format", NULL, 0, NULL, NULL},
    {"format_map", NULL, 0, NULL, NULL},
    {"isascii", NULL, 0, NULL, NULL},
    {"isdecimal", NULL, 0, NULL, NULL},
    {"isidentifier", NULL, 0, NULL, NULL},
    {"isnumeric", NULL, 0, NULL, NULL},
    {"isprintable", NULL, 0, NULL, NULL},
    {"istitle", NULL, 0, NULL, NULL},
    {"ljust", NULL, 0, NULL, NULL},
    {"maketrans", NULL, 0, NULL, NULL},
    {"rjust", NULL, 0, NULL, NULL},
    {"swapcase", NULL, 0, NULL, NULL},
    {"translate", NULL, 0, NULL, NULL},
    {"zfill", "width", 1, method_zfill, NULL}};

static const text_builtin dict_methods[] = {{"get", "key default", 1, method_get, NULL},
                                            {"items", NULL, 0, method_items, NULL},
                                            {"keys", NULL, 0, method_keys, NULL},
                                            {"values", NULL, 0, method_values, NULL},
                                            {"copy", NULL, 0, NULL, NULL},
                                            {"fromkeys", NULL, 0, NULL, NULL}};

static const text_builtin list_methods[] = {{"count", "value", 1, method_list_count, NULL},
                                            {"index", "value", 1, method_list_index, NULL}};

const text_builtin *text_method_find(text_value v, text_text name) {
    const text_builtin *rows = NULL;
    size_t count = 0;
    if (v.kind == TEXT_STRING) {
        rows = string_methods;
        count = sizeof string_methods / sizeof *string_methods;
    } else if (v.kind == TEXT_DICT) {
        rows = dict_methods;
        count = sizeof dict_methods / sizeof *dict_methods;
    } else if (v.kind == TEXT_LIST || v.kind == TEXT_TUPLE || v.kind == TEXT_RANGE) {
        rows = list_methods;
        count = sizeof list_methods / sizeof *list_methods;
    }
    for (size_t i = 0; i < count; i++) {
        if (text_text_is(name, rows[i].name)) return &rows[i];
    }
    return NULL;
}
