/* '...' % values, as Python formats them: of strings, whole numbers and floats. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "text/template/template_internal.h"

enum { WIDEST = 1000 };

/* %(name)-08.3f */
typedef struct format_spec {
    text_text name; /* bytes NULL: none */
    char flags[6];  /* those of "-+ 0#" that are given */
    int width, precision;
    char conversion;
} format_spec;

/* What is left to be formatted. */
typedef struct format_job {
    text_render *r;
    text_value values; /* a tuple, a dict or a single value */
    size_t used;
    text_builder *b;
} format_job;

static sifr_status wrong(const format_job *job, const char *what) {
    return text_template_fail(&job->r->place, "formatting with %%: %s", what);
}

static bool has_flag(const format_spec *spec, char flag) {
    return strchr(spec->flags, flag) != NULL;
}

/* --- reading a place --- */

static sifr_status read_number(const format_job *job, const char **at, const char *end, int *out) {
    for (*out = 0; *at < end && **at >= '0' && **at <= '9'; ++*at) {
        *out = *out * 10 + (**at - '0');
        if (*out > WIDEST) return wrong(job, "a width or precision above 1000");
    }
    return SIFR_OK;
}

static sifr_status read_name(const format_job *job, const char **at, const char *end,
                             format_spec *out) {
    if (*at == end || **at != '(') return SIFR_OK;
    const char *close = memchr(*at, ')', (size_t)(end - *at));
    if (!close) return wrong(job, "a ( without )");
    out->name = (text_text){*at + 1, (size_t)(close - *at) - 1};
    *at = close + 1;
    return SIFR_OK;
}

/* From behind the %. */
static sifr_status read_spec(const format_job *job, const char **at, const char *end,
                             format_spec *out) {
    size_t flags = 0;
    *out = (format_spec){.precision = -1};
    BASE_TRY(read_name(job, at, end, out));
    for (; *at < end && strchr("-+ 0#", **at); ++*at)
        if (!has_flag(out, **at)) out->flags[flags++] = **at;
    BASE_TRY(read_number(job, at, end, &out->width));
    if (*at < end && **at == '.') {
        ++*at;
        BASE_TRY(read_number(job, at, end, &out->precision));
    }
    while (*at < end && strchr("hlL", **at)) ++*at;
    if (*at == end) return wrong(job, "the text ends inside a place");
    out->conversion = *(*at)++;
    return SIFR_OK;
}

/* --- values --- */

static sifr_status take_value(format_job *job, const format_spec *spec, text_value *out) {
    bool found, tuple = job->values.kind == TEXT_TUPLE;
    if (spec->name.bytes) {
        if (job->values.kind != TEXT_DICT) return wrong(job, "a name needs a mapping");
        BASE_TRY(text_dict_get(job->r, job->values.dict, text_of_text(spec->name), &found, out));
        return found ? SIFR_OK : wrong(job, "a name that is not there");
    }
    size_t count = tuple ? job->values.items->count : 1;
    if (job->used == count) return wrong(job, "not enough values");
    *out = tuple ? job->values.items->values[job->used] : job->values;
    job->used++;
    return SIFR_OK;
}

static sifr_status put_padded(const format_job *job, const format_spec *spec, text_text text) {
    int64_t blanks = spec->width - (int64_t)text_char_count(text);
    bool left = has_flag(spec, '-');
    if (blanks > 0 && !left)
        BASE_TRY(text_build_repeated(job->r, job->b, text_literal(" "), blanks));
    BASE_TRY(text_build(job->r, job->b, text.bytes, text.size));
    if (blanks <= 0 || !left) return SIFR_OK;
    return text_build_repeated(job->r, job->b, text_literal(" "), blanks);
}

static sifr_status put_string(const format_job *job, const format_spec *spec, text_value v) {
    text_text text;
    size_t end = 0, size;
    BASE_TRY(text_string(job->r, v, &text));
    for (int i = 0; spec->precision >= 0 && i < spec->precision && end < text.size; i++) {
        (void)text_char(text, end, &size);
        end += size;
    }
    if (spec->precision >= 0) text.size = end;
    return put_padded(job, spec, text);
}

/* The C conversion that is Python's, but for its length. */
static void c_format(const format_spec *spec, const char *length, char out[40]) {
    char precision[16] = "";
    if (spec->precision >= 0) snprintf(precision, sizeof precision, ".%d", spec->precision);
    snprintf(out, 40, "%%%s%d%s%s%c", spec->flags, spec->width, precision, length,
             spec->conversion);
    if (!spec->width)
        snprintf(out, 40, "%%%s%s%s%c", spec->flags, precision, length, spec->conversion);
}

/* Signs stand before prefix and zeros, so a number is written without its sign. */
static sifr_status put_base(const format_job *job, const format_spec *spec, int64_t number) {
    char digits[WIDEST + 32], format[40], text[WIDEST + 64];
    uint64_t size = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    format_spec bare = *spec;
    bare.width = 0, bare.flags[0] = '\0';
    c_format(&bare, "ll", format);
    snprintf(digits, sizeof digits, format, (unsigned long long)size);
    const char *sign = number < 0            ? "-"
                       : has_flag(spec, '+') ? "+"
                       : has_flag(spec, ' ') ? " "
                                             : "";
    char prefix[3] = "";
    if (has_flag(spec, '#')) snprintf(prefix, sizeof prefix, "0%c", spec->conversion);
    int zeros = spec->width - (int)(strlen(sign) + strlen(prefix) + strlen(digits));
    if (!has_flag(spec, '0') || has_flag(spec, '-') || zeros < 0) zeros = 0;
    snprintf(text, sizeof text, "%s%s%.*s%s", sign, prefix, zeros, "", digits);
    size_t before = strlen(sign) + strlen(prefix);
    memset(text + before, '0', (size_t)zeros);
    memcpy(text + before + zeros, digits, strlen(digits) + 1);
    return put_padded(job, spec, text_literal(text));
}

static sifr_status put_whole(const format_job *job, format_spec *spec, text_value v) {
    if (!text_is_number(v)) return wrong(job, "a number is needed");
    if (v.kind == TEXT_FLOAT) {
        if (!strchr("diu", spec->conversion)) return wrong(job, "a whole number is needed");
        double whole = trunc(v.real);
        if (!(fabs(whole) < 0x1p63)) return wrong(job, "a number beyond 64 bits");
        v = text_of_int((int64_t)whole);
    }
    if (strchr("diu", spec->conversion)) {
        char *alternate = strchr(spec->flags, '#');
        if (alternate) memmove(alternate, alternate + 1, strlen(alternate));
        spec->conversion = 'u';
    }
    return put_base(job, spec, v.kind == TEXT_BOOL ? v.truth : v.integer);
}

static sifr_status put_float(const format_job *job, const format_spec *spec, text_value v) {
    char format[40], text[WIDEST * 2 + 400];
    if (!text_is_number(v)) return wrong(job, "a number is needed");
    c_format(spec, "", format);
    snprintf(text, sizeof text, format, text_number(v));
    return text_build(job->r, job->b, text, strlen(text));
}

static sifr_status put_value(format_job *job, format_spec *spec) {
    text_value v;
    if (spec->conversion == '%') return text_build(job->r, job->b, "%", 1);
    if (!strchr("sdiuxXoeEfFgG", spec->conversion))
        return wrong(job, "the conversion is not supported (supported: s d i u x X o e E f F g G)");
    BASE_TRY(take_value(job, spec, &v));
    if (spec->conversion == 's') return put_string(job, spec, v);
    return strchr("diuxXo", spec->conversion) ? put_whole(job, spec, v) : put_float(job, spec, v);
}

sifr_status text_percent(text_render *r, text_text text, text_value values, text_value *out) {
    text_builder b = {0};
    format_job job = {.r = r, .values = values, .b = &b};
    const char *at = text.bytes, *end = text.bytes + text.size;
    while (at < end) {
        const char *place = memchr(at, '%', (size_t)(end - at));
        format_spec spec;
        BASE_TRY(text_build(r, &b, at, (size_t)((place ? place : end) - at)));
        at = place ? place + 1 : end;
        if (!place) break;
        BASE_TRY(read_spec(&job, &at, end, &spec));
        BASE_TRY(put_value(&job, &spec));
        BASE_TRY(text_template_charge(r, 1));
    }
    size_t count = values.kind == TEXT_TUPLE ? values.items->count : 1;
    if (values.kind != TEXT_DICT && job.used < count) return wrong(&job, "too many values");
    *out = text_of_text(text_built(&b));
    return SIFR_OK;
}

/* str(self) % values, or by name. */
sifr_status text_filter_format(text_render *r, text_value self, const text_call *call,
                               text_value *out) {
    text_text text;
    text_value values;
    BASE_TRY(text_string(r, self, &text));
    if (call->count && call->named)
        return text_template_fail(&r->place, "format takes values or names, not both");
    if (call->named) {
        BASE_TRY(text_new_dict(r, TEXT_DICT, call->named, &values));
        for (size_t i = 0; i < call->named; i++)
            BASE_TRY(text_dict_set(r, values.dict, text_of_text(call->names[i]),
                                   call->values[call->count + i]));
    } else {
        BASE_TRY(text_new_items(r, TEXT_TUPLE, call->count, &values));
        for (size_t i = 0; i < call->count; i++)
            BASE_TRY(text_append(r, values.items, call->values[i]));
    }
    return text_percent(r, text, values, out);
}
