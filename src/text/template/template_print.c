/* Values as text: str, repr, and JSON as Python's json.dumps writes it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <utf8proc.h>

#include "text/template/template_internal.h"

sifr_status text_build(text_render *r, text_builder *b, const char *bytes, size_t size) {
    size_t needed;
    if (!base_add_size(b->size, size, &needed) || needed > TEXT_TEMPLATE_OUTPUT)
        return text_template_fail(&r->place, "a text of more than %zu MiB",
                                  TEXT_TEMPLATE_OUTPUT >> 20);
    if (needed > b->capacity) {
        char *grown;
        size_t capacity = 2 * b->capacity > needed ? 2 * b->capacity : needed + 64;
        BASE_TRY(TEXT_TAKE(r, capacity, 1, &grown));
        if (b->size) memcpy(grown, b->bytes, b->size);
        b->bytes = grown;
        b->capacity = capacity;
    }
    if (size) memcpy(b->bytes + b->size, bytes, size);
    b->size = needed;
    return text_template_charge(r, size / 64);
}

text_text text_built(const text_builder *b) {
    return (text_text){b->size ? b->bytes : "", b->size};
}

sifr_status text_build_repeated(text_render *r, text_builder *b, text_text text, int64_t count) {
    int64_t bytes;
    if (text.size == 0 || count <= 0) return SIFR_OK;
    if (!base_mul_i64((int64_t)text.size, count, &bytes) || bytes > (int64_t)TEXT_TEMPLATE_OUTPUT)
        return text_template_fail(&r->place, "a text of more than %zu MiB",
                                  TEXT_TEMPLATE_OUTPUT >> 20);
    while (count--) BASE_TRY(text_build(r, b, text.bytes, text.size));
    return SIFR_OK;
}

static sifr_status build_literal(text_render *r, text_builder *b, const char *text) {
    return text_build(r, b, text, strlen(text));
}

/* ---- numbers ---- */

/* The shortest digits that give the same double, as Python's repr. */
void text_float_text(double real, char out[32]) {
    char digits[32];
    int exponent = 0;
    if (isnan(real) || isinf(real)) {
        strcpy(out, isnan(real) ? "nan" : real > 0 ? "inf" : "-inf");
        return;
    }
    for (int precision = 0; precision < 17; precision++) {
        snprintf(digits, sizeof digits, "%.*e", precision, real);
        if (strtod(digits, NULL) == real) break;
    }
    char *e = strchr(digits, 'e');
    exponent = (int)strtol(e + 1, NULL, 10);
    *e = 0;
    if (exponent < -4 || exponent >= 16) { /* a sign, 17 digits and a point */
        snprintf(out, 32, "%.19se%c%02d", digits, exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }
    int places = (int)strlen(digits) - (real < 0 || signbit(real)) - 2; /* behind the point */
    places = places < 0 ? 0 : places;
    places -= exponent;
    snprintf(out, 32, "%.*f", places < 1 ? 1 : places, real);
}

static sifr_status build_number(text_render *r, text_builder *b, text_value v) {
    char text[32];
    if (v.kind == TEXT_FLOAT)
        text_float_text(v.real, text);
    else
        snprintf(text, sizeof text, "%lld", (long long)v.integer);
    return build_literal(r, b, text);
}

/* ---- repr ---- */

static bool printable(int32_t c) {
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return false;
    case UTF8PROC_CATEGORY_ZS:
        return c == ' ';
    default:
        return true;
    }
}

static sifr_status build_repr(text_render *r, text_builder *b, text_text text) {
    bool single = text.size && memchr(text.bytes, '\'', text.size);
    bool twice = text.size && memchr(text.bytes, '"', text.size);
    char quote = single && !twice ? '"' : '\'', escape[16];
    BASE_TRY(text_build(r, b, &quote, 1));
    for (size_t at = 0, size; at < text.size; at += size) {
        int32_t c = text_char(text, at, &size);
        if (c == quote || c == '\\')
            snprintf(escape, sizeof escape, "\\%c", (char)c);
        else if (c == '\n' || c == '\r' || c == '\t')
            snprintf(escape, sizeof escape, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
        else if (printable(c))
            snprintf(escape, sizeof escape, "%.*s", (int)size, text.bytes + at);
        else
            snprintf(escape, sizeof escape,
                     c < 0x100     ? "\\x%02x"
                     : c < 0x10000 ? "\\u%04x"
                                   : "\\U%08x",
                     (unsigned)c);
        BASE_TRY(build_literal(r, b, escape));
    }
    return text_build(r, b, &quote, 1);
}

static sifr_status build_value(text_render *r, text_builder *b, text_value v);

static sifr_status build_items(text_render *r, text_builder *b, text_value v) {
    bool tuple = v.kind == TEXT_TUPLE;
    BASE_TRY(build_literal(r, b, tuple ? "(" : "["));
    for (size_t i = 0; i < v.items->count; i++) {
        if (i) BASE_TRY(build_literal(r, b, ", "));
        BASE_TRY(build_value(r, b, v.items->values[i]));
    }
    return build_literal(r, b, !tuple ? "]" : v.items->count == 1 ? ",)" : ")");
}

static sifr_status build_dict(text_render *r, text_builder *b, const text_dict *dict) {
    BASE_TRY(build_literal(r, b, "{"));
    for (size_t i = 0; i < dict->count; i++) {
        if (i) BASE_TRY(build_literal(r, b, ", "));
        BASE_TRY(build_value(r, b, dict->keys[i]));
        BASE_TRY(build_literal(r, b, ": "));
        BASE_TRY(build_value(r, b, dict->values[i]));
    }
    return build_literal(r, b, "}");
}

static sifr_status build_any(text_render *r, text_builder *b, text_value v) {
    switch (v.kind) {
    case TEXT_NONE:
        return build_literal(r, b, "None");
    case TEXT_BOOL:
        return build_literal(r, b, v.truth ? "True" : "False");
    case TEXT_INT:
    case TEXT_FLOAT:
        return build_number(r, b, v);
    case TEXT_STRING:
        return build_repr(r, b, v.text);
    case TEXT_LIST:
    case TEXT_TUPLE:
        return build_items(r, b, v);
    case TEXT_DICT:
        return build_dict(r, b, v.dict);
    case TEXT_UNDEFINED:
        return build_literal(r, b, "Undefined");
    default:
        return text_template_fail(&r->place, "a value of type %s cannot be printed",
                                  text_kind_name(v));
    }
}

/* repr(v) */
static sifr_status build_value(text_render *r, text_builder *b, text_value v) {
    BASE_TRY(text_template_enter(r));
    sifr_status status = build_any(r, b, v);
    r->depth--;
    return status;
}

sifr_status text_print(text_render *r, text_builder *b, text_value v) {
    if (v.kind == TEXT_STRING || v.kind == TEXT_SAFE)
        return text_build(r, b, v.text.bytes, v.text.size);
    if (v.kind == TEXT_UNDEFINED) return SIFR_OK;
    return build_value(r, b, v);
}

sifr_status text_string(text_render *r, text_value v, text_text *out) {
    text_builder b = {0};
    if (v.kind == TEXT_STRING) {
        *out = v.text;
        return SIFR_OK;
    }
    BASE_TRY(text_print(r, &b, v));
    *out = text_built(&b);
    return SIFR_OK;
}

/* ---- JSON ---- */

typedef struct dump {
    text_builder b;
    bool ascii, sort, indented;
    text_text indent, comma, colon;
} dump;

static sifr_status dump_string(text_render *r, dump *d, text_text text) {
    static const char plain[] = "\"\\\n\r\t\f\b", names[] = "\"\\nrtfb";
    char escape[16];
    BASE_TRY(build_literal(r, &d->b, "\""));
    for (size_t at = 0, size; at < text.size; at += size) {
        int32_t c = text_char(text, at, &size);
        const char *place = c && c < 128 ? strchr(plain, c) : NULL;
        if (place) {
            snprintf(escape, sizeof escape, "\\%c", names[place - plain]);
        } else if (c < 0x20 || (d->ascii && c > 0x7e && c < 0x10000)) {
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)c);
        } else if (d->ascii && c >= 0x10000) {
            snprintf(escape, sizeof escape, "\\u%04x\\u%04x",
                     0xd800 + ((unsigned)(c - 0x10000) >> 10), 0xdc00 + ((unsigned)c & 0x3ff));
        } else {
            BASE_TRY(text_build(r, &d->b, text.bytes + at, size));
            continue;
        }
        BASE_TRY(build_literal(r, &d->b, escape));
    }
    return build_literal(r, &d->b, "\"");
}

static sifr_status dump_break(text_render *r, dump *d, int level) {
    if (!d->indented) return SIFR_OK;
    BASE_TRY(build_literal(r, &d->b, "\n"));
    return text_build_repeated(r, &d->b, d->indent, level);
}

static sifr_status dump_float(text_render *r, dump *d, double real) {
    char text[32];
    if (isnan(real) || isinf(real))
        return build_literal(r, &d->b, isnan(real) ? "NaN" : real > 0 ? "Infinity" : "-Infinity");
    text_float_text(real, text);
    return build_literal(r, &d->b, text);
}

static sifr_status dump_key(text_render *r, dump *d, text_value key) {
    char text[32];
    if (key.kind == TEXT_STRING) return dump_string(r, d, key.text);
    if (key.kind == TEXT_FLOAT)
        text_float_text(key.real, text);
    else if (key.kind == TEXT_INT)
        snprintf(text, sizeof text, "%lld", (long long)key.integer);
    else if (key.kind == TEXT_BOOL || key.kind == TEXT_NONE)
        strcpy(text, key.kind == TEXT_NONE ? "null" : key.truth ? "true" : "false");
    else
        return text_template_fail(&r->place, "tojson: a key of type %s", text_kind_name(key));
    return dump_string(r, d, text_literal(text));
}

static sifr_status dump_value(text_render *r, dump *d, text_value v, int level);

static sifr_status dump_items(text_render *r, dump *d, const text_items *items, int level) {
    if (items->count == 0) return build_literal(r, &d->b, "[]");
    BASE_TRY(build_literal(r, &d->b, "["));
    for (size_t i = 0; i < items->count; i++) {
        if (i) BASE_TRY(text_build(r, &d->b, d->comma.bytes, d->comma.size));
        BASE_TRY(dump_break(r, d, level + 1));
        BASE_TRY(dump_value(r, d, items->values[i], level + 1));
    }
    BASE_TRY(dump_break(r, d, level));
    return build_literal(r, &d->b, "]");
}

static sifr_status sorted_dict(text_render *r, const text_dict *dict, text_dict *out) {
    text_value copy;
    BASE_TRY(text_new_dict(r, TEXT_DICT, dict->count, &copy));
    memcpy(copy.dict->keys, dict->keys, dict->count * sizeof *dict->keys);
    memcpy(copy.dict->values, dict->values, dict->count * sizeof *dict->values);
    BASE_TRY(text_sort(r, copy.dict->values, dict->keys, dict->count, false));
    BASE_TRY(text_sort(r, copy.dict->keys, dict->keys, dict->count, false));
    *out = *copy.dict;
    out->count = dict->count;
    return SIFR_OK;
}

static sifr_status dump_dict(text_render *r, dump *d, const text_dict *dict, int level) {
    text_dict sorted;
    if (dict->count == 0) return build_literal(r, &d->b, "{}");
    if (d->sort) {
        BASE_TRY(sorted_dict(r, dict, &sorted));
        dict = &sorted;
    }
    BASE_TRY(build_literal(r, &d->b, "{"));
    for (size_t i = 0; i < dict->count; i++) {
        if (i) BASE_TRY(text_build(r, &d->b, d->comma.bytes, d->comma.size));
        BASE_TRY(dump_break(r, d, level + 1));
        BASE_TRY(dump_key(r, d, dict->keys[i]));
        BASE_TRY(text_build(r, &d->b, d->colon.bytes, d->colon.size));
        BASE_TRY(dump_value(r, d, dict->values[i], level + 1));
    }
    BASE_TRY(dump_break(r, d, level));
    return build_literal(r, &d->b, "}");
}

static sifr_status dump_any(text_render *r, dump *d, text_value v, int level) {
    switch (v.kind) {
    case TEXT_NONE:
        return build_literal(r, &d->b, "null");
    case TEXT_BOOL:
        return build_literal(r, &d->b, v.truth ? "true" : "false");
    case TEXT_INT:
        return build_number(r, &d->b, v);
    case TEXT_FLOAT:
        return dump_float(r, d, v.real);
    case TEXT_STRING:
        return dump_string(r, d, v.text);
    case TEXT_LIST:
    case TEXT_TUPLE:
        return dump_items(r, d, v.items, level);
    case TEXT_DICT:
        return dump_dict(r, d, v.dict, level);
    default:
        return text_template_fail(&r->place, "tojson: a value of type %s%s%.*s", text_kind_name(v),
                                  v.kind == TEXT_UNDEFINED ? ": " : "",
                                  v.kind == TEXT_UNDEFINED ? (int)v.text.size : 0,
                                  v.kind == TEXT_UNDEFINED ? v.text.bytes : "");
    }
}

static sifr_status dump_value(text_render *r, dump *d, text_value v, int level) {
    BASE_TRY(text_template_enter(r));
    sifr_status status = dump_any(r, d, v, level);
    r->depth--;
    return status;
}

static bool given(text_value v) {
    return v.kind != TEXT_ABSENT && v.kind != TEXT_NONE;
}

static sifr_status dump_separators(text_render *r, text_value v, dump *d) {
    if (!given(v)) return SIFR_OK;
    if ((v.kind != TEXT_LIST && v.kind != TEXT_TUPLE) || v.items->count != 2)
        return text_template_fail(&r->place, "tojson: separators must be two strings");
    BASE_TRY(text_want_text(r, v.items->values[0], "tojson's separator", &d->comma));
    return text_want_text(r, v.items->values[1], "tojson's separator", &d->colon);
}

sifr_status text_filter_tojson(text_render *r, text_value self, const text_value *arguments,
                               text_value *out) {
    dump d = {.ascii = text_truth(arguments[0]), .sort = text_truth(arguments[3])};
    text_builder blanks = {0};
    d.indented = given(arguments[1]);
    d.comma = text_literal(d.indented ? "," : ", ");
    d.colon = text_literal(": ");
    BASE_TRY(dump_separators(r, arguments[2], &d));
    if (arguments[1].kind == TEXT_STRING) {
        d.indent = arguments[1].text;
    } else if (d.indented) {
        int64_t width;
        BASE_TRY(text_want_int(r, arguments[1], "tojson's indent", &width));
        BASE_TRY(text_build_repeated(r, &blanks, text_literal(" "), width));
        d.indent = text_built(&blanks);
    }
    BASE_TRY(dump_value(r, &d, self, 0));
    *out = text_of_text(text_built(&d.b));
    return SIFR_OK;
}
