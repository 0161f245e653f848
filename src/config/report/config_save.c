/* The effective config as a file. jansson writes 0.1 as 0.10000000000000001, which nobody wants to
 * read; what it writes for everything but numbers and nesting is kept. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/heap.h"
#include "config/config_private.h"

/* The text so far. */
typedef struct config_sheet {
    char *data;
    size_t used, capacity;
} config_sheet;

static sifr_status config_save_text(config_sheet *sheet, const char *text, sifr_error *error) {
    size_t length = strlen(text);
    BASE_TRY(base_grow(&sheet->data, &sheet->capacity, sheet->used + length + 1, 1, error));
    memcpy(sheet->data + sheet->used, text, length + 1);
    sheet->used += length;
    return SIFR_OK;
}

static sifr_status config_save_line(config_sheet *sheet, int depth, sifr_error *error) {
    BASE_TRY(config_save_text(sheet, "\n", error));
    for (int i = 0; i < depth; i++) BASE_TRY(config_save_text(sheet, "  ", error));
    return SIFR_OK;
}

static sifr_status config_save_scalar(config_sheet *sheet, const json_t *value, sifr_error *error) {
    char number[40];
    if (json_is_real(value)) {
        config_real_text(json_real_value(value), number);
        if (!strpbrk(number, ".e")) strcat(number, ".0");
        return config_save_text(sheet, number, error);
    }
    char *text = json_dumps(value, JSON_ENCODE_ANY);
    if (!text) return base_fail_alloc(error, 64);
    sifr_status status = config_save_text(sheet, text, error);
    free(text);
    return status;
}

static sifr_status config_save_value(config_sheet *sheet, const json_t *value, int depth,
                                     sifr_error *error);

static sifr_status config_save_object(config_sheet *sheet, const json_t *object, int depth,
                                      sifr_error *error) {
    const char *name, *separator = "{";
    json_t *member;
    json_object_foreach((json_t *)object, name, member) {
        BASE_TRY(config_save_text(sheet, separator, error));
        BASE_TRY(config_save_line(sheet, depth + 1, error));
        json_t *text = json_string(name);
        sifr_status status =
            text ? config_save_scalar(sheet, text, error) : base_fail_alloc(error, strlen(name));
        json_decref(text);
        if (status != SIFR_OK) return status;
        BASE_TRY(config_save_text(sheet, ": ", error));
        BASE_TRY(config_save_value(sheet, member, depth + 1, error));
        separator = ",";
    }
    if (json_object_size(object) == 0) return config_save_text(sheet, "{}", error);
    BASE_TRY(config_save_line(sheet, depth, error));
    return config_save_text(sheet, "}", error);
}

static sifr_status config_save_value(config_sheet *sheet, const json_t *value, int depth,
                                     sifr_error *error) {
    if (json_is_object(value)) return config_save_object(sheet, value, depth, error);
    if (!json_is_array(value)) return config_save_scalar(sheet, value, error);
    BASE_TRY(config_save_text(sheet, "[", error));
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (i) BASE_TRY(config_save_text(sheet, ", ", error));
        BASE_TRY(config_save_value(sheet, json_array_get(value, i), depth, error));
    }
    return config_save_text(sheet, "]", error);
}

sifr_status config_json_text(const json_t *value, char **out, sifr_error *error) {
    config_sheet sheet = {0};
    sifr_status status = config_save_value(&sheet, value, 0, error);
    if (status == SIFR_OK) status = config_save_text(&sheet, "\n", error);
    if (status != SIFR_OK) {
        free(sheet.data);
        return status;
    }
    *out = sheet.data;
    return SIFR_OK;
}

sifr_status config_text(const sifr_config *config, char **out, sifr_error *error) {
    json_t *effective = config_effective(config);
    if (!effective) return base_fail_alloc(error, 64);
    sifr_status status = config_json_text(effective, out, error);
    json_decref(effective);
    return status;
}

sifr_status config_save(const sifr_config *config, const char *path, sifr_error *error) {
    char *text;
    BASE_TRY(config_text(config, &text, error));
    sifr_status status = base_write_file(path, text, strlen(text), error);
    free(text);
    return status;
}
