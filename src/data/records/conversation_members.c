/* A row's members, the failures that name them, and messages made of them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "data/records/conversation_internal.h"

sifr_status data_row_fail(const data_row_place *place, const char *field, sifr_error *error,
                          const char *format, ...) {
    char said[SIFR_ERROR_LENGTH / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(said, sizeof said, format, arguments);
    va_end(arguments);
    const char *blank = *field ? " " : "";
    if (!place->line)
        return base_fail(error, SIFR_FAILED, "%.400s: row %lld: %s%s%s", place->file,
                         (long long)place->row, field, blank, said);
    return base_fail(error, SIFR_FAILED, "%.400s: row %lld, line %lld: %s%s%s", place->file,
                     (long long)place->row, (long long)place->line, field, blank, said);
}

const char *data_row_or_skip(const data_row_place *place, const char *ending) {
    return place->skipped ? "" : ending;
}

const char *data_json_kind(const json_t *value) {
    if (!value) return "is missing";
    if (json_is_null(value)) return "is null";
    if (json_is_string(value)) return "is a string";
    if (json_is_array(value)) return "is a list";
    if (json_is_object(value)) return "is an object";
    return json_is_boolean(value) ? "is true or false" : "is a number";
}

sifr_status data_row_sound(const json_t *value, const char *field, const data_row_place *place,
                           sifr_error *error) {
    const char *fault = base_json_fault(value);
    char name[96];
    if (!fault) return SIFR_OK;
    snprintf(name, sizeof name, "'%.80s'", field);
    return data_row_fail(place, name, error, "%s%s", fault,
                         data_row_or_skip(place, "; mend the row, or give --skip-bad-rows"));
}

sifr_status data_row_sound_all(const json_t *row, const data_form *form,
                               const data_row_place *place, sifr_error *error) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)row, name, value) {
        if (base_json_fault(value) && data_form_reads(form, row, name))
            return data_row_sound(value, name, place, error);
    }
    return SIFR_OK;
}

sifr_status data_row_string(const json_t *row, const char *field, bool optional,
                            const data_row_place *place, const char **out, size_t *size,
                            sifr_error *error) {
    const json_t *value = field ? data_row_get(row, field) : NULL;
    char name[96];
    *out = json_string_value(value);
    *size = json_string_length(value);
    if (*out) return SIFR_OK;
    *out = "";
    if (optional && (!value || json_is_null(value))) return SIFR_OK;
    BASE_TRY(data_row_sound(value, field, place, error));
    char list[64];
    bool emptied = field && data_row_emptied(row, field, list);
    snprintf(name, sizeof name, "'%.80s'", emptied ? list : field ? field : "");
    if (emptied)
        return data_row_fail(place, name, error, "is an empty list, so there is nothing to learn%s",
                             data_row_or_skip(place, "; take the row out, or give "
                                                     "--skip-bad-rows"));
    return data_row_fail(place, name, error, "%s; it must be a string%s", data_json_kind(value),
                         data_row_or_skip(place, "; mend the row, or give --skip-bad-rows"));
}

static sifr_status parse_list(const char *text, size_t size, const char *name,
                              const data_row_place *place, json_t **out, sifr_error *error) {
    sifr_error said = {0};
    sifr_status status = base_json_parse(text, size, "as JSON", out, &said);
    if (status == SIFR_NO_MEMORY) return base_fail(error, status, "%s", said.message);
    if (status != SIFR_OK)
        return data_row_fail(place, name, error, "is a string that does not hold a list: %.200s",
                             said.message);
    return SIFR_OK;
}

sifr_status data_row_list(const json_t *row, const char *field, const data_row_place *place,
                          json_t **out, sifr_error *error) {
    json_t *value = field ? data_row_get(row, field) : NULL;
    char name[96];
    *out = NULL;
    if (!value || json_is_null(value)) return SIFR_OK;
    BASE_TRY(data_row_sound(value, field, place, error));
    if (json_is_string(value) && json_string_length(value) == 0) return SIFR_OK; /* of a CSV file */
    snprintf(name, sizeof name, "'%.80s'", field);
    if (json_is_string(value))
        BASE_TRY(parse_list(json_string_value(value), json_string_length(value), name, place, out,
                            error));
    else
        *out = json_incref(value);
    if (json_is_array(*out)) return SIFR_OK;
    const char *kind = data_json_kind(*out);
    json_decref(*out);
    *out = NULL;
    return data_row_fail(place, name, error, "%s; it must be a list", kind);
}

sifr_status data_messages_add(json_t *messages, const char *role, const char *content, size_t size,
                              sifr_error *error) {
    json_t *message = json_pack("{s:s, s:s%}", "role", role, "content", content, size);
    return json_array_append_new(messages, message) ? base_fail_alloc(error, size) : SIFR_OK;
}

sifr_status data_messages_add_system(json_t *messages, const json_t *row, const data_form *form,
                                     const data_row_place *place, sifr_error *error) {
    const char *field = data_form_field(form, DATA_PART_SYSTEM, row), *words;
    const json_t *text = field ? json_object_get(row, field) : NULL;
    const char *role = json_string_value(json_object_get(json_array_get(messages, 0), "role"));
    size_t size = 0;
    if (field) BASE_TRY(data_row_string(row, field, true, place, &words, &size, error));
    if (!size) return SIFR_OK;
    if (role && (strcmp(role, "system") == 0 || strcmp(role, "developer") == 0)) return SIFR_OK;
    json_t *message = json_pack("{s:s, s:O}", "role", "system", "content", text);
    return json_array_insert_new(messages, 0, message) ? base_fail_alloc(error, 64) : SIFR_OK;
}
