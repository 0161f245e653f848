#include "data/labelled/label_values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static const char *type_name(const json_t *value) {
    static const char *const names[] = {"an object", "a list", "a text", "a whole number",
                                        "a number",  "true",   "false",  "null"};
    return value ? names[json_typeof(value)] : "missing";
}

static sifr_status wrong_type(const data_label_place *p, const json_t *value, const char *must,
                              sifr_error *error) {
    const char *fault = base_json_fault(value);
    return base_fail(error, SIFR_FAILED, "%s: line %lld: '%.60s' %s%s; it must be %s", p->file,
                     (long long)p->line, p->column, fault ? "" : "is ",
                     fault ? fault : type_name(value), must);
}

static sifr_status unknown(const data_label_place *p, const char *name, size_t size,
                           sifr_error *error) {
    char known[256];
    size_t used = 0;
    known[0] = '\0';
    for (int64_t i = 0; i < p->labels->count && i < 6 && used < sizeof known - 1; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%.30s", i ? ", " : "",
                                 i < 5 ? p->labels->names[i] : "…");
    return base_fail(error, SIFR_FAILED,
                     "%s: line %lld: '%.60s' has the label '%.*s', which the model does not have "
                     "(it has %lld: %s)",
                     p->file, (long long)p->line, p->column, (int)(size < 60 ? size : 60), name,
                     (long long)p->labels->count, known);
}

/* By name, or as a number in its only spelling. */
static int64_t find(const model_labels *labels, const char *name, size_t size) {
    char text[24], again[24];
    int64_t found = model_labels_find(labels, name, size);
    if (found >= 0 || size == 0 || size >= sizeof text) return found;
    memcpy(text, name, size);
    text[size] = '\0';
    long long number = strtoll(text, NULL, 10);
    snprintf(again, sizeof again, "%lld", number);
    return strcmp(text, again) == 0 && number >= 0 && number < labels->count ? number : -1;
}

static sifr_status find_text(const data_label_place *p, const char *name, size_t size, int32_t *out,
                             sifr_error *error) {
    int64_t found = find(p->labels, name, size);
    if (found < 0) return unknown(p, name, size, error);
    *out = (int32_t)found;
    return SIFR_OK;
}

sifr_status data_label_number(const data_label_place *p, const json_t *value, int32_t *out,
                              sifr_error *error) {
    char text[32];
    if (json_is_integer(value)) {
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
        return find_text(p, text, strlen(text), out, error);
    }
    if (!json_is_string(value)) return wrong_type(p, value, "a label's name or number", error);
    return find_text(p, json_string_value(value), json_string_length(value), out, error);
}

sifr_status data_label_list(const data_label_place *p, const json_t *value, size_t count,
                            int32_t *out, sifr_error *error) {
    size_t i;
    const json_t *item;
    if (!json_is_array(value))
        return wrong_type(p, value, "a list with a tag for each word", error);
    if (json_array_size(value) != count)
        return base_fail(error, SIFR_FAILED,
                         "%s: line %lld: '%.60s' has %zu tags for %zu words; give each word one",
                         p->file, (long long)p->line, p->column, json_array_size(value), count);
    json_array_foreach((json_t *)value, i, item) {
        BASE_TRY(data_label_number(p, item, &out[i], error));
    }
    return SIFR_OK;
}

static sifr_status set_text(const data_label_place *p, const char *text, size_t size, float *out,
                            sifr_error *error) {
    const char *end = text + size;
    while (text < end) {
        const char *bar = memchr(text, '|', (size_t)(end - text));
        int32_t label = 0;
        size_t part = (size_t)((bar ? bar : end) - text);
        while (part && *text == ' ') text++, part--;
        while (part && text[part - 1] == ' ') part--;
        BASE_TRY(find_text(p, text, part, &label, error));
        out[label] = 1;
        text = bar ? bar + 1 : end;
    }
    return SIFR_OK;
}

sifr_status data_label_set(const data_label_place *p, const json_t *value, float *out,
                           sifr_error *error) {
    size_t i;
    const json_t *item;
    for (int64_t k = 0; k < p->labels->count; k++) out[k] = 0;
    if (json_is_string(value))
        return set_text(p, json_string_value(value), json_string_length(value), out, error);
    if (!json_is_array(value))
        return wrong_type(p, value, "a list of labels, or a text with | between them", error);
    json_array_foreach((json_t *)value, i, item) {
        int32_t label = 0;
        BASE_TRY(data_label_number(p, item, &label, error));
        out[label] = 1;
    }
    return SIFR_OK;
}

static sifr_status read_real(const data_label_place *p, const json_t *value, float *out,
                             sifr_error *error) {
    const char *text = json_string_value(value);
    char *end;
    double number = json_is_number(value) ? json_number_value(value) : 0;
    if (text) {
        number = strtod(text, &end);
        while (*end == ' ') end++;
        if (end == text || *end)
            return base_fail(error, SIFR_FAILED,
                             "%s: line %lld: '%.60s' is '%.60s'; a regression needs a number",
                             p->file, (long long)p->line, p->column, text);
    } else if (!json_is_number(value)) {
        return wrong_type(p, value, "a number", error);
    }
    *out = (float)number;
    if (isfinite(*out)) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: line %lld: '%.60s' is no finite number", p->file,
                     (long long)p->line, p->column);
}

sifr_status data_label_reals(const data_label_place *p, const json_t *value, float *out,
                             sifr_error *error) {
    size_t count = (size_t)p->labels->count, i;
    const json_t *item;
    if (count == 1 && !json_is_array(value)) return read_real(p, value, out, error);
    if (!json_is_array(value)) return wrong_type(p, value, "a list of numbers", error);
    if (json_array_size(value) != count)
        return base_fail(error, SIFR_FAILED,
                         "%s: line %lld: '%.60s' has %zu numbers, but the model gives %zu", p->file,
                         (long long)p->line, p->column, json_array_size(value), count);
    json_array_foreach((json_t *)value, i, item) BASE_TRY(read_real(p, item, &out[i], error));
    return SIFR_OK;
}
