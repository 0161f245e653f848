/* Functions that every template has: range, namespace, dict, raise_exception, strftime_now. */
#include <stdio.h>

#include "text/template/template_internal.h"

static sifr_status need_arguments(text_render *r, const char *name, const text_call *call,
                                  size_t least, size_t most) {
    if (call->named == 0 && call->count >= least && call->count <= most) return SIFR_OK;
    return text_template_fail(&r->place, "%s takes %zu to %zu arguments without names", name, least,
                              most);
}

static sifr_status function_range(text_render *r, text_value self, const text_call *call,
                                  text_value *out) {
    int64_t part[3] = {0, 0, 1}, span = 0, count = 0;
    (void)self;
    BASE_TRY(need_arguments(r, "range", call, 1, 3));
    for (size_t i = 0; i < call->count; i++)
        BASE_TRY(text_want_int(r, call->values[i], "an argument of range",
                               &part[call->count == 1 ? 1 : i]));
    if (part[2] == 0) return text_template_fail(&r->place, "range: the step is 0");
    bool ahead = part[2] > 0 ? part[0] < part[1] : part[0] > part[1];
    if (ahead && (__builtin_sub_overflow(part[1], part[0], &span) || part[2] == INT64_MIN))
        return text_template_fail(&r->place, "range: more than %d items", TEXT_TEMPLATE_RANGE);
    if (ahead) count = part[2] > 0 ? (span - 1) / part[2] + 1 : (span + 1) / part[2] + 1;
    if (count > TEXT_TEMPLATE_RANGE)
        return text_template_fail(&r->place, "range: %lld items, at most %d are allowed",
                                  (long long)count, TEXT_TEMPLATE_RANGE);
    BASE_TRY(text_new_items(r, TEXT_RANGE, (size_t)count, out));
    for (int64_t i = 0; i < count; i++)
        BASE_TRY(text_append(r, out->items, text_of_int(part[0] + i * part[2])));
    return SIFR_OK;
}

/* A dict or namespace of the named arguments, after those of a dict. */
static sifr_status make_dict(text_render *r, const char *name, text_value_kind kind,
                             const text_call *call, text_value *out) {
    if (call->count > 1 || (call->count == 1 && call->values[0].kind != TEXT_DICT))
        return text_template_fail(&r->place, "%s takes one dict and names", name);
    BASE_TRY(text_new_dict(r, kind, call->named, out));
    for (size_t i = 0; call->count && i < call->values[0].dict->count; i++)
        BASE_TRY(text_dict_set(r, out->dict, call->values[0].dict->keys[i],
                               call->values[0].dict->values[i]));
    for (size_t i = 0; i < call->named; i++)
        BASE_TRY(text_dict_set(r, out->dict, text_of_text(call->names[i]),
                               call->values[call->count + i]));
    return SIFR_OK;
}

static sifr_status function_dict(text_render *r, text_value self, const text_call *call,
                                 text_value *out) {
    (void)self;
    return make_dict(r, "dict", TEXT_DICT, call, out);
}

static sifr_status function_namespace(text_render *r, text_value self, const text_call *call,
                                      text_value *out) {
    (void)self;
    BASE_TRY(make_dict(r, "namespace", TEXT_NAMESPACE, call, out));
    for (size_t i = 0; i < out->dict->count; i++) {
        text_value key = out->dict->keys[i];
        if (key.kind == TEXT_STRING && key.text.size && key.text.bytes[0] == '_')
            return text_template_fail(&r->place, "a namespace has no names that begin with _");
    }
    return SIFR_OK;
}

static sifr_status function_raise(text_render *r, text_value self, const text_call *call,
                                  text_value *out) {
    text_text text;
    (void)self;
    (void)out;
    if (call->count + call->named != 1)
        return text_template_fail(&r->place, "raise_exception takes one argument");
    BASE_TRY(text_string(r, call->values[0], &text));
    return text_template_fail(&r->place, "the template refuses these messages: %.*s",
                              (int)(text.size < 500 ? text.size : 500), text.bytes);
}

/* Only what C's strftime and Python's write alike. */
static sifr_status check_format(text_render *r, text_text format) {
    static const char allowed[] = "aAbBcdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYzZ%";
    for (size_t i = 0; i < format.size; i++) {
        if (format.bytes[i] == 0)
            return text_template_fail(&r->place, "strftime_now: a NUL in the format");
        if (format.bytes[i] != '%') continue;
        i++;
        if (i < format.size && format.bytes[i] == '-') i++;
        char c = i < format.size ? format.bytes[i] : 0;
        if (c == 0 || !strchr(allowed, c))
            return text_template_fail(&r->place, "strftime_now: %%%c is not supported",
                                      c ? c : '?');
    }
    return SIFR_OK;
}

/* %z and %Z of a time without a zone are nothing, as in Python. */
static sifr_status function_strftime(text_render *r, text_value self, const text_value *arguments,
                                     text_value *out) {
    char format[256], *text;
    size_t used = 0;
    text_text given;
    (void)self;
    BASE_TRY(text_want_text(r, arguments[0], "strftime_now's format", &given));
    if (!r->now) return text_template_fail(&r->place, "strftime_now: there is no clock here");
    BASE_TRY(check_format(r, given));
    if (given.size >= sizeof format / 2)
        return text_template_fail(&r->place, "strftime_now: the format is too long");
    format[used++] = '.'; /* so that a result of nothing is no error */
    for (size_t i = 0; i < given.size; i++) {
        bool pair = given.bytes[i] == '%' && i + 1 < given.size;
        if (pair && (given.bytes[i + 1] == 'z' || given.bytes[i + 1] == 'Z')) {
            i++;
            continue;
        }
        format[used++] = given.bytes[i];
        if (pair) format[used++] = given.bytes[++i];
    }
    format[used] = 0;
    BASE_TRY(TEXT_TAKE(r, 4096, 1, &text));
    size_t size = strftime(text, 4096, format, r->now);
    if (size == 0) return text_template_fail(&r->place, "strftime_now: the format is too long");
    *out = text_of_text((text_text){text + 1, size - 1});
    return SIFR_OK;
}

const text_builtin *text_function_find(text_text name) {
    static const text_builtin functions[] = {{"range", NULL, 0, NULL, function_range},
                                             {"dict", NULL, 0, NULL, function_dict},
                                             {"namespace", NULL, 0, NULL, function_namespace},
                                             {"raise_exception", NULL, 0, NULL, function_raise},
                                             {"strftime_now", "format", 1, function_strftime, NULL},
                                             {"lipsum", NULL, 0, NULL, NULL},
                                             {"cycler", NULL, 0, NULL, NULL},
                                             {"joiner", NULL, 0, NULL, NULL}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (text_text_is(name, functions[i].name)) return &functions[i];
    }
    return NULL;
}
