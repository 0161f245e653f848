/* The effective config as a file. jansson writes 0.1 as 0.10000000000000001, which nobody wants to
 * read; what it writes for everything but numbers and nesting is kept. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "train/config_private.h"

static sifr_status train_save_text(base_writer *writer, const char *text, sifr_error *error) {
    return base_writer_write(writer, text, strlen(text), error);
}

static sifr_status train_save_line(base_writer *writer, int depth, sifr_error *error) {
    BASE_TRY(train_save_text(writer, "\n", error));
    for (int i = 0; i < depth; i++) BASE_TRY(train_save_text(writer, "  ", error));
    return SIFR_OK;
}

static sifr_status train_save_scalar(base_writer *writer, const json_t *value, sifr_error *error) {
    char number[40];
    if (json_is_real(value)) {
        train_real_text(json_real_value(value), number);
        if (!strpbrk(number, ".e")) strcat(number, ".0");
        return train_save_text(writer, number, error);
    }
    char *text = json_dumps(value, JSON_ENCODE_ANY);
    if (!text) return base_fail_alloc(error, 64);
    sifr_status status = train_save_text(writer, text, error);
    free(text);
    return status;
}

static sifr_status train_save_value(base_writer *writer, const json_t *value, int depth,
                                    sifr_error *error);

static sifr_status train_save_object(base_writer *writer, const json_t *object, int depth,
                                     sifr_error *error) {
    const char *name, *separator = "{";
    json_t *member;
    json_object_foreach((json_t *)object, name, member) {
        BASE_TRY(train_save_text(writer, separator, error));
        BASE_TRY(train_save_line(writer, depth + 1, error));
        json_t *text = json_string(name);
        sifr_status status =
            text ? train_save_scalar(writer, text, error) : base_fail_alloc(error, strlen(name));
        json_decref(text);
        if (status != SIFR_OK) return status;
        BASE_TRY(train_save_text(writer, ": ", error));
        BASE_TRY(train_save_value(writer, member, depth + 1, error));
        separator = ",";
    }
    if (json_object_size(object) == 0) return train_save_text(writer, "{}", error);
    BASE_TRY(train_save_line(writer, depth, error));
    return train_save_text(writer, "}", error);
}

static sifr_status train_save_value(base_writer *writer, const json_t *value, int depth,
                                    sifr_error *error) {
    if (json_is_object(value)) return train_save_object(writer, value, depth, error);
    if (!json_is_array(value)) return train_save_scalar(writer, value, error);
    BASE_TRY(train_save_text(writer, "[", error));
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (i) BASE_TRY(train_save_text(writer, ", ", error));
        BASE_TRY(train_save_value(writer, json_array_get(value, i), depth, error));
    }
    return train_save_text(writer, "]", error);
}

sifr_status train_config_save(const train_config *config, const char *path, sifr_error *error) {
    json_t *effective = train_config_effective(config);
    if (!effective) return base_fail_alloc(error, 64);
    base_writer writer;
    sifr_status status = base_writer_open(&writer, path, error);
    if (status == SIFR_OK) {
        status = train_save_value(&writer, effective, 0, error);
        if (status == SIFR_OK) status = train_save_text(&writer, "\n", error);
        if (status == SIFR_OK) status = base_writer_commit(&writer, error);
        if (status != SIFR_OK) base_writer_abort(&writer);
    }
    json_decref(effective);
    return status;
}
