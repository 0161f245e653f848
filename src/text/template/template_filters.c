/* Filters of single values, and the table of all filters. Those of sequences are in
 * template_sequence.c. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "text/template/template_internal.h"

#define FILTER(name)                                                                               \
    static sifr_status name(text_render *r, text_value self, const text_value *arguments,          \
                            text_value *out)

static bool given(text_value v) {
    return v.kind != TEXT_ABSENT && v.kind != TEXT_NONE;
}

FILTER(filter_abs) {
    if (!text_is_number(self))
        return text_template_fail(&r->place, "abs of a value of type %s", text_kind_name(self));
    (void)arguments;
    *out = self;
    if (self.kind == TEXT_FLOAT) out->real = fabs(self.real);
    if (self.kind == TEXT_BOOL) *out = text_of_int(self.truth);
    if (self.kind == TEXT_INT && self.integer < 0) {
        if (self.integer == INT64_MIN) return text_template_fail(&r->place, "abs: too large");
        out->integer = -self.integer;
    }
    return SIFR_OK;
}

FILTER(filter_default) {
    bool wanted = self.kind == TEXT_UNDEFINED || (text_truth(arguments[1]) && !text_truth(self));
    (void)r;
    *out = self;
    if (!wanted) return SIFR_OK;
    *out = arguments[0].kind == TEXT_ABSENT ? text_of_text(text_literal("")) : arguments[0];
    return SIFR_OK;
}

FILTER(filter_string) {
    text_text text;
    (void)arguments;
    BASE_TRY(text_string(r, self, &text));
    *out = text_of_text(text);
    return SIFR_OK;
}

FILTER(filter_safe) {
    BASE_TRY(filter_string(r, self, arguments, out));
    out->kind = TEXT_SAFE;
    return SIFR_OK;
}

static sifr_status cased(text_render *r, text_value self, text_case how, text_value *out) {
    text_text text;
    BASE_TRY(text_string(r, self, &text));
    BASE_TRY(text_change_case(r, text, how, &text));
    *out = text_of_text(text);
    return SIFR_OK;
}

FILTER(filter_upper) {
    (void)arguments;
    return cased(r, self, TEXT_UPPER, out);
}

FILTER(filter_lower) {
    (void)arguments;
    return cased(r, self, TEXT_LOWER, out);
}

FILTER(filter_capitalize) {
    (void)arguments;
    return cased(r, self, TEXT_CAPITALIZE, out);
}

FILTER(filter_title) {
    (void)arguments;
    return cased(r, self, TEXT_TITLE_FILTER, out);
}

FILTER(filter_trim) {
    text_text text, chars;
    BASE_TRY(text_string(r, self, &text));
    if (given(arguments[0])) BASE_TRY(text_want_text(r, arguments[0], "trim's chars", &chars));
    *out = text_of_text(text_strip(text, given(arguments[0]) ? &chars : NULL, true, true));
    return text_template_charge_all(r, given(arguments[0]) ? chars.size + 1 : 1, text.size);
}

FILTER(filter_replace) {
    text_text text, from, to;
    int64_t count = -1;
    BASE_TRY(text_string(r, self, &text));
    BASE_TRY(text_string(r, arguments[0], &from));
    BASE_TRY(text_string(r, arguments[1], &to));
    if (given(arguments[2])) BASE_TRY(text_want_int(r, arguments[2], "replace's count", &count));
    BASE_TRY(text_template_replace(r, text, from, to, count, &text));
    *out = text_of_text(text);
    return SIFR_OK;
}

/* Lines but the first, and empty ones, get `width` blanks in front. */
FILTER(filter_indent) {
    text_builder blanks = {0}, b = {0};
    text_text text, indent = text_literal("    ");
    text_value lines;
    bool first = text_truth(arguments[1]), blank = text_truth(arguments[2]);
    int64_t width;
    BASE_TRY(text_want_text(r, self, "what indent gets", &text));
    if (arguments[0].kind == TEXT_STRING) {
        indent = arguments[0].text;
    } else if (arguments[0].kind != TEXT_ABSENT) {
        BASE_TRY(text_want_int(r, arguments[0], "indent's width", &width));
        BASE_TRY(text_build_repeated(r, &blanks, text_literal(" "), width));
        indent = text_built(&blanks);
    }
    BASE_TRY(text_build(r, &b, text.bytes, text.size));
    BASE_TRY(text_build(r, &b, "\n", 1));
    BASE_TRY(text_splitlines(r, text_built(&b), false, &lines));
    b = (text_builder){0};
    if (first) BASE_TRY(text_build(r, &b, indent.bytes, indent.size));
    for (size_t i = 0; i < lines.items->count; i++) {
        text_text line = lines.items->values[i].text;
        if (i) BASE_TRY(text_build(r, &b, "\n", 1));
        if (i && (blank || line.size)) BASE_TRY(text_build(r, &b, indent.bytes, indent.size));
        BASE_TRY(text_build(r, &b, line.bytes, line.size));
    }
    *out = text_of_text(text_built(&b));
    return SIFR_OK;
}

/* ---- numbers ---- */

/* Digits of text that Python's int or float reads, without blanks and single underscores; false:
 * none of them. */
static bool plain_number(text_text text, char *out, size_t capacity) {
    size_t used = 0;
    text = text_strip(text, NULL, true, true);
    for (size_t i = 0; i < text.size; i++) {
        char c = text.bytes[i];
        bool between = i && i + 1 < text.size && isdigit((unsigned char)text.bytes[i - 1]) &&
                       isdigit((unsigned char)text.bytes[i + 1]);
        if (c == '_' && between) continue;
        if (c <= ' ' || used + 1 >= capacity || (c == 'x' || c == 'X' || c == 'p' || c == '('))
            return false;
        out[used++] = c;
    }
    out[used] = 0;
    return used > 0;
}

static bool to_float(text_text text, double *out) {
    char plain[512], *end;
    if (!plain_number(text, plain, sizeof plain)) return false;
    *out = strtod(plain, &end);
    return *end == 0;
}

static bool to_int(text_text text, int base, int64_t *out) {
    char plain[512], *end;
    if (!plain_number(text, plain, sizeof plain)) return false;
    const char *digits = plain + (*plain == '-' || *plain == '+');
    if (base != 16 && !isdigit((unsigned char)*digits)) return false;
    errno = 0;
    *out = strtoll(plain, &end, base);
    return *end == 0 && errno == 0;
}

static bool float_to_int(double real, int64_t *out) {
    if (!(real > -0x1p63 && real < 0x1p63)) return false;
    *out = (int64_t)real;
    return true;
}

static sifr_status need_defined(text_render *r, text_value v) {
    if (v.kind != TEXT_UNDEFINED) return SIFR_OK;
    return text_template_fail(&r->place, "%.*s is undefined", (int)v.text.size, v.text.bytes);
}

/* What int and float get: defined, and the work of reading it counted. */
static sifr_status begin_number(text_render *r, text_value v) {
    BASE_TRY(need_defined(r, v));
    return text_template_charge(r, v.kind == TEXT_STRING ? v.text.size / 64 : 0);
}

FILTER(filter_int) {
    int64_t value, base = 10;
    double real;
    BASE_TRY(begin_number(r, self));
    *out = arguments[0].kind == TEXT_ABSENT ? text_of_int(0) : arguments[0];
    if (arguments[1].kind != TEXT_ABSENT)
        BASE_TRY(text_want_int(r, arguments[1], "int's base", &base));
    if (base < 2 || base > 36)
        return text_template_fail(&r->place, "int: base %lld is not supported", (long long)base);
    bool is_real = self.kind == TEXT_FLOAT;
    real = is_real ? self.real : 0;
    if (self.kind == TEXT_STRING) {
        if (to_int(self.text, (int)base, &value))
            *out = text_of_int(value);
        else
            is_real = to_float(self.text, &real);
    }
    if (is_real && !isnan(real)) {
        if (!float_to_int(real, &value))
            return text_template_fail(&r->place, "int: a number beyond 64 bits");
        *out = text_of_int(value);
    } else if (text_is_number(self)) {
        *out = text_of_int(self.kind == TEXT_INT ? self.integer : self.truth);
    }
    return SIFR_OK;
}

FILTER(filter_float) {
    double real;
    BASE_TRY(begin_number(r, self));
    *out = arguments[0].kind == TEXT_ABSENT ? text_of_float(0) : arguments[0];
    if (self.kind == TEXT_STRING && to_float(self.text, &real)) *out = text_of_float(real);
    if (text_is_number(self)) *out = text_of_float(text_number(self));
    return SIFR_OK;
}

FILTER(filter_round) {
    int64_t places = 0;
    text_text method = text_literal("common");
    char digits[400];
    if (!text_is_number(self))
        return text_template_fail(&r->place, "round of a value of type %s", text_kind_name(self));
    if (arguments[0].kind != TEXT_ABSENT)
        BASE_TRY(text_want_int(r, arguments[0], "round's precision", &places));
    if (arguments[1].kind != TEXT_ABSENT)
        BASE_TRY(text_want_text(r, arguments[1], "round's method", &method));
    if (places < 0 || places > 20)
        return text_template_fail(&r->place, "round: a precision beyond 0 … 20 is not supported");
    double real = text_number(self), scale = pow(10, (double)places);
    if (text_text_is(method, "common")) {
        if (self.kind != TEXT_FLOAT) {
            *out = text_of_int(self.kind == TEXT_INT ? self.integer : self.truth);
            return SIFR_OK;
        }
        snprintf(digits, sizeof digits, "%.*f", (int)places, real); /* rounds as Python does */
        *out = text_of_float(strtod(digits, NULL));
    } else if (text_text_is(method, "ceil") || text_text_is(method, "floor")) {
        bool up = text_text_is(method, "ceil");
        *out = text_of_float((up ? ceil(real * scale) : floor(real * scale)) / scale);
    } else {
        return text_template_fail(&r->place, "round: the method must be common, ceil or floor");
    }
    return SIFR_OK;
}

/* ---- the tables ---- */

static const text_builtin filters[] = {
    {"abs", NULL, 0, filter_abs, NULL},
    {"capitalize", NULL, 0, filter_capitalize, NULL},
    {"d", "default_value boolean", 0, filter_default, NULL},
    {"default", "default_value boolean", 0, filter_default, NULL},
    {"float", "default", 0, filter_float, NULL},
    {"format", NULL, 0, NULL, text_filter_format},
    {"indent", "width first blank", 0, filter_indent, NULL},
    {"int", "default base", 0, filter_int, NULL},
    {"lower", NULL, 0, filter_lower, NULL},
    {"replace", "old new count", 2, filter_replace, NULL},
    {"round", "precision method", 0, filter_round, NULL},
    {"safe", NULL, 0, filter_safe, NULL},
    {"string", NULL, 0, filter_string, NULL},
    {"title", NULL, 0, filter_title, NULL},
    {"tojson", "ensure_ascii indent separators sort_keys", 0, text_filter_tojson, NULL},
    {"trim", "chars", 0, filter_trim, NULL},
    {"upper", NULL, 0, filter_upper, NULL}};

static const char *const other_filters[] = {
    "attr",   "center",    "e",        "escape",    "filesizeformat", "forceescape",
    "pprint", "random",    "slice",    "striptags", "truncate",       "urlencode",
    "urlize", "wordcount", "wordwrap", "xmlattr"};

static const text_builtin *find(const text_builtin *rows, size_t count, text_text name) {
    for (size_t i = 0; i < count; i++) {
        if (text_text_is(name, rows[i].name)) return &rows[i];
    }
    return NULL;
}

const text_builtin *text_filter_find(text_text name, bool *known) {
    size_t count;
    const text_builtin *row = find(filters, sizeof filters / sizeof *filters, name);
    const text_builtin *sequences = text_sequence_filters(&count);
    if (!row) row = find(sequences, count, name);
    *known = row != NULL;
    for (size_t i = 0; i < sizeof other_filters / sizeof *other_filters; i++)
        *known |= text_text_is(name, other_filters[i]);
    return row;
}
