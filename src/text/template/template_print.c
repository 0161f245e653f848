/* Values as text: str, repr, and JSON as Python's json.dumps writes it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <utf8proc.h>

#include "text/template/template_internal.h"

sifr_status formats_build(formats_render *r, formats_builder *b, const char *bytes, size_t size) {
    size_t needed;
    if (!base_add_size(b->size, size, &needed) || needed > FORMATS_TEMPLATE_OUTPUT)
        return formats_template_fail(&r->place, "a text of more than %zu MiB",
                                     FORMATS_TEMPLATE_OUTPUT >> 20);
    if (needed > b->room) {
        char *grown;
        size_t room = 2 * b->room > needed ? 2 * b->room : needed + 64;
        BASE_TRY(FORMATS_TAKE(r, room, 1, &grown));
        if (b->size) memcpy(grown, b->bytes, b->size);
        b->bytes = grown;
        b->room = room;
    }
    if (size) memcpy(b->bytes + b->size, bytes, size);
    b->size = needed;
    return formats_template_charge(r, size / 64);
}

formats_text formats_built(const formats_builder *b) {
    return (formats_text){b->size ? b->bytes : "", b->size};
}

sifr_status formats_build_repeated(formats_render *r, formats_builder *b, formats_text text,
                                   int64_t count) {
    int64_t bytes;
    if (text.size == 0 || count <= 0) return SIFR_OK;
    if (!base_mul_i64((int64_t)text.size, count, &bytes) ||
        bytes > (int64_t)FORMATS_TEMPLATE_OUTPUT)
        return formats_template_fail(&r->place, "a text of more than %zu MiB",
                                     FORMATS_TEMPLATE_OUTPUT >> 20);
    while (count--) BASE_TRY(formats_build(r, b, text.bytes, text.size));
    return SIFR_OK;
}

static sifr_status build_literal(formats_render *r, formats_builder *b, const char *text) {
    return formats_build(r, b, text, strlen(text));
}

/* ---- numbers ---- */

/* The shortest digits that give the same double, as Python's repr. */
void formats_float_text(double real, char out[32]) {
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

static sifr_status build_number(formats_render *r, formats_builder *b, formats_value v) {
    char text[32];
    if (v.kind == FORMATS_FLOAT)
        formats_float_text(v.real, text);
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

static sifr_status build_repr(formats_render *r, formats_builder *b, formats_text text) {
    bool single = text.size && memchr(text.bytes, '\'', text.size);
    bool twice = text.size && memchr(text.bytes, '"', text.size);
    char quote = single && !twice ? '"' : '\'', escape[16];
    BASE_TRY(formats_build(r, b, &quote, 1));
    for (size_t at = 0, size; at < text.size; at += size) {
        int32_t c = formats_char(text, at, &size);
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
    return formats_build(r, b, &quote, 1);
}

static sifr_status build_value(formats_render *r, formats_builder *b, formats_value v);

static sifr_status build_items(formats_render *r, formats_builder *b, formats_value v) {
    bool tuple = v.kind == FORMATS_TUPLE;
    BASE_TRY(build_literal(r, b, tuple ? "(" : "["));
    for (size_t i = 0; i < v.items->count; i++) {
        if (i) BASE_TRY(build_literal(r, b, ", "));
        BASE_TRY(build_value(r, b, v.items->values[i]));
    }
    return build_literal(r, b, !tuple ? "]" : v.items->count == 1 ? ",)" : ")");
}

static sifr_status build_dict(formats_render *r, formats_builder *b, const formats_dict *dict) {
    BASE_TRY(build_literal(r, b, "{"));
    for (size_t i = 0; i < dict->count; i++) {
        if (i) BASE_TRY(build_literal(r, b, ", "));
        BASE_TRY(build_value(r, b, dict->keys[i]));
        BASE_TRY(build_literal(r, b, ": "));
        BASE_TRY(build_value(r, b, dict->values[i]));
    }
    return build_literal(r, b, "}");
}

static sifr_status build_any(formats_render *r, formats_builder *b, formats_value v) {
    switch (v.kind) {
    case FORMATS_NONE:
        return build_literal(r, b, "None");
    case FORMATS_BOOL:
        return build_literal(r, b, v.truth ? "True" : "False");
    case FORMATS_INT:
    case FORMATS_FLOAT:
        return build_number(r, b, v);
    case FORMATS_STRING:
        return build_repr(r, b, v.text);
    case FORMATS_LIST:
    case FORMATS_TUPLE:
        return build_items(r, b, v);
    case FORMATS_DICT:
        return build_dict(r, b, v.dict);
    case FORMATS_UNDEFINED:
        return build_literal(r, b, "Undefined");
    default:
        return formats_template_fail(&r->place, "a value of type %s cannot be printed",
                                     formats_kind_name(v));
    }
}

/* repr(v) */
static sifr_status build_value(formats_render *r, formats_builder *b, formats_value v) {
    BASE_TRY(formats_template_enter(r));
    sifr_status status = build_any(r, b, v);
    r->depth--;
    return status;
}

sifr_status formats_print(formats_render *r, formats_builder *b, formats_value v) {
    if (v.kind == FORMATS_STRING || v.kind == FORMATS_SAFE)
        return formats_build(r, b, v.text.bytes, v.text.size);
    if (v.kind == FORMATS_UNDEFINED) return SIFR_OK;
    return build_value(r, b, v);
}

sifr_status formats_string(formats_render *r, formats_value v, formats_text *out) {
    formats_builder b = {0};
    if (v.kind == FORMATS_STRING) {
        *out = v.text;
        return SIFR_OK;
    }
    BASE_TRY(formats_print(r, &b, v));
    *out = formats_built(&b);
    return SIFR_OK;
}

/* ---- JSON ---- */

typedef struct dump {
    formats_builder b;
    bool ascii, sort, indented;
    formats_text indent, comma, colon;
} dump;

static sifr_status dump_string(formats_render *r, dump *d, formats_text text) {
    static const char plain[] = "\"\\\n\r\t\f\b", names[] = "\"\\nrtfb";
    char escape[16];
    BASE_TRY(build_literal(r, &d->b, "\""));
    for (size_t at = 0, size; at < text.size; at += size) {
        int32_t c = formats_char(text, at, &size);
        const char *place = c && c < 128 ? strchr(plain, c) : NULL;
        if (place) {
            snprintf(escape, sizeof escape, "\\%c", names[place - plain]);
        } else if (c < 0x20 || (d->ascii && c > 0x7e && c < 0x10000)) {
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)c);
        } else if (d->ascii && c >= 0x10000) {
            snprintf(escape, sizeof escape, "\\u%04x\\u%04x",
                     0xd800 + ((unsigned)(c - 0x10000) >> 10), 0xdc00 + ((unsigned)c & 0x3ff));
        } else {
            BASE_TRY(formats_build(r, &d->b, text.bytes + at, size));
            continue;
        }
        BASE_TRY(build_literal(r, &d->b, escape));
    }
    return build_literal(r, &d->b, "\"");
}

static sifr_status dump_break(formats_render *r, dump *d, int level) {
    if (!d->indented) return SIFR_OK;
    BASE_TRY(build_literal(r, &d->b, "\n"));
    return formats_build_repeated(r, &d->b, d->indent, level);
}

static sifr_status dump_float(formats_render *r, dump *d, double real) {
    char text[32];
    if (isnan(real) || isinf(real))
        return build_literal(r, &d->b, isnan(real) ? "NaN" : real > 0 ? "Infinity" : "-Infinity");
    formats_float_text(real, text);
    return build_literal(r, &d->b, text);
}

static sifr_status dump_key(formats_render *r, dump *d, formats_value key) {
    char text[32];
    if (key.kind == FORMATS_STRING) return dump_string(r, d, key.text);
    if (key.kind == FORMATS_FLOAT)
        formats_float_text(key.real, text);
    else if (key.kind == FORMATS_INT)
        snprintf(text, sizeof text, "%lld", (long long)key.integer);
    else if (key.kind == FORMATS_BOOL || key.kind == FORMATS_NONE)
        strcpy(text, key.kind == FORMATS_NONE ? "null" : key.truth ? "true" : "false");
    else
        return formats_template_fail(&r->place, "tojson: a key of type %s", formats_kind_name(key));
    return dump_string(r, d, formats_literal(text));
}

static sifr_status dump_value(formats_render *r, dump *d, formats_value v, int level);

static sifr_status dump_items(formats_render *r, dump *d, const formats_items *items, int level) {
    if (items->count == 0) return build_literal(r, &d->b, "[]");
    BASE_TRY(build_literal(r, &d->b, "["));
    for (size_t i = 0; i < items->count; i++) {
        if (i) BASE_TRY(formats_build(r, &d->b, d->comma.bytes, d->comma.size));
        BASE_TRY(dump_break(r, d, level + 1));
        BASE_TRY(dump_value(r, d, items->values[i], level + 1));
    }
    BASE_TRY(dump_break(r, d, level));
    return build_literal(r, &d->b, "]");
}

static sifr_status sorted_dict(formats_render *r, const formats_dict *dict, formats_dict *out) {
    formats_value copy;
    BASE_TRY(formats_new_dict(r, FORMATS_DICT, dict->count, &copy));
    memcpy(copy.dict->keys, dict->keys, dict->count * sizeof *dict->keys);
    memcpy(copy.dict->values, dict->values, dict->count * sizeof *dict->values);
    BASE_TRY(formats_sort(r, copy.dict->values, dict->keys, dict->count, false));
    BASE_TRY(formats_sort(r, copy.dict->keys, dict->keys, dict->count, false));
    *out = *copy.dict;
    out->count = dict->count;
    return SIFR_OK;
}

static sifr_status dump_dict(formats_render *r, dump *d, const formats_dict *dict, int level) {
    formats_dict sorted;
    if (dict->count == 0) return build_literal(r, &d->b, "{}");
    if (d->sort) {
        BASE_TRY(sorted_dict(r, dict, &sorted));
        dict = &sorted;
    }
    BASE_TRY(build_literal(r, &d->b, "{"));
    for (size_t i = 0; i < dict->count; i++) {
        if (i) BASE_TRY(formats_build(r, &d->b, d->comma.bytes, d->comma.size));
        BASE_TRY(dump_break(r, d, level + 1));
        BASE_TRY(dump_key(r, d, dict->keys[i]));
        BASE_TRY(formats_build(r, &d->b, d->colon.bytes, d->colon.size));
        BASE_TRY(dump_value(r, d, dict->values[i], level + 1));
    }
    BASE_TRY(dump_break(r, d, level));
    return build_literal(r, &d->b, "}");
}

static sifr_status dump_any(formats_render *r, dump *d, formats_value v, int level) {
    switch (v.kind) {
    case FORMATS_NONE:
        return build_literal(r, &d->b, "null");
    case FORMATS_BOOL:
        return build_literal(r, &d->b, v.truth ? "true" : "false");
    case FORMATS_INT:
        return build_number(r, &d->b, v);
    case FORMATS_FLOAT:
        return dump_float(r, d, v.real);
    case FORMATS_STRING:
        return dump_string(r, d, v.text);
    case FORMATS_LIST:
    case FORMATS_TUPLE:
        return dump_items(r, d, v.items, level);
    case FORMATS_DICT:
        return dump_dict(r, d, v.dict, level);
    default:
        return formats_template_fail(&r->place, "tojson: a value of type %s%s%.*s",
                                     formats_kind_name(v), v.kind == FORMATS_UNDEFINED ? ": " : "",
                                     v.kind == FORMATS_UNDEFINED ? (int)v.text.size : 0,
                                     v.kind == FORMATS_UNDEFINED ? v.text.bytes : "");
    }
}

static sifr_status dump_value(formats_render *r, dump *d, formats_value v, int level) {
    BASE_TRY(formats_template_enter(r));
    sifr_status status = dump_any(r, d, v, level);
    r->depth--;
    return status;
}

static bool given(formats_value v) {
    return v.kind != FORMATS_ABSENT && v.kind != FORMATS_NONE;
}

static sifr_status dump_separators(formats_render *r, formats_value v, dump *d) {
    if (!given(v)) return SIFR_OK;
    if ((v.kind != FORMATS_LIST && v.kind != FORMATS_TUPLE) || v.items->count != 2)
        return formats_template_fail(&r->place, "tojson: separators must be two strings");
    BASE_TRY(formats_want_text(r, v.items->values[0], "tojson's separator", &d->comma));
    return formats_want_text(r, v.items->values[1], "tojson's separator", &d->colon);
}

sifr_status formats_filter_tojson(formats_render *r, formats_value self,
                                  const formats_value *arguments, formats_value *out) {
    dump d = {.ascii = formats_truth(arguments[0]), .sort = formats_truth(arguments[3])};
    formats_builder blanks = {0};
    d.indented = given(arguments[1]);
    d.comma = formats_literal(d.indented ? "," : ", ");
    d.colon = formats_literal(": ");
    BASE_TRY(dump_separators(r, arguments[2], &d));
    if (arguments[1].kind == FORMATS_STRING) {
        d.indent = arguments[1].text;
    } else if (d.indented) {
        int64_t width;
        BASE_TRY(formats_want_int(r, arguments[1], "tojson's indent", &width));
        BASE_TRY(formats_build_repeated(r, &blanks, formats_literal(" "), width));
        d.indent = formats_built(&blanks);
    }
    BASE_TRY(dump_value(r, &d, self, 0));
    *out = formats_of_text(formats_built(&d.b));
    return SIFR_OK;
}
