/* A setting by its path: its value, where it came from, how messages name it. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/config_private.h"

config_setting *config_setting_at(const sifr_config *config, const char *path) {
    size_t index = config_key_count(); /* behind the rows: a setting that nobody gives */
    config_key_find(path, &index);
    return &config->settings[index];
}

bool config_setting_given(const sifr_config *config, const char *path) {
    const json_t *given = config_setting_at(config, path)->given;
    return given && !config_value_is_auto(given);
}

bool config_gives(const sifr_config *config, const char *path) {
    return config_setting_given(config, path);
}

bool config_gives_section(const sifr_config *config, const char *name) {
    char path[64];
    snprintf(path, sizeof path, "%s.enabled", name);
    if (config_key_find(path, NULL)) return json_is_true(config_setting_at(config, path)->given);
    const json_t *section = config_setting_at(config, name)->given;
    return section && !json_is_null(section) && !json_is_false(section) &&
           !json_is_false(json_object_get(section, "enabled"));
}

double config_setting_number(const sifr_config *config, const char *path) {
    return json_number_value(config_setting_at(config, path)->value);
}

const char *config_get_word(const sifr_config *config, const char *path) {
    return json_string_value(config_setting_at(config, path)->value);
}

double config_get_number(const sifr_config *config, const char *path) {
    return config_setting_number(config, path);
}

bool config_get_truth(const sifr_config *config, const char *path) {
    return json_is_true(config_setting_at(config, path)->value);
}

int64_t config_setting_int(const sifr_config *config, const char *path) {
    return (int64_t)json_integer_value(config_setting_at(config, path)->value);
}

sifr_status config_setting_put(const sifr_config *config, const char *path, json_t *value,
                               sifr_error *error, const char *note, ...) {
    config_setting *setting = config_setting_at(config, path);
    if (!value) return base_fail_alloc(error, sizeof(json_int_t));
    if (setting == &config->settings[config_key_count()]) {
        json_decref(value);
        return base_fail(error, SIFR_FAILED,
                         "%s is no key of the config, and is set by sifr: a defect of sifr; please "
                         "report it",
                         path);
    }
    json_decref(setting->value);
    setting->value = value;
    va_list arguments;
    va_start(arguments, note);
    vsnprintf(setting->note, CONFIG_NOTE, note, arguments);
    va_end(arguments);
    return SIFR_OK;
}

bool config_is_true(const sifr_config *config, const char *path) {
    return json_is_true(config_setting_at(config, path)->value);
}

bool config_key_flag_name(const config_key *key, char out[64]) {
    const char *name = key->flag;
    bool written = (key->type != CONFIG_ANY || key->argument) && key->type != CONFIG_SECTION &&
                   key->status != CONFIG_ALIAS; /* as words or as JSON */
    if (!name && written && strncmp(key->path, "sifr.", 5) == 0) name = config_key_leaf(key);
    if (!name) return false;
    snprintf(out, 64, "%s", name);
    for (char *c = out; *c; c++) {
        if (*c == '_') *c = '-';
    }
    return true;
}

char *config_setting_where(const sifr_config *config, size_t index, char *out, size_t size) {
    const config_key *key = config_key_at(index);
    char flag[64];
    if (config->settings[index].origin == CONFIG_FROM_FLAG && config_key_flag_name(key, flag)) {
        snprintf(out, size, "--%s", flag);
    } else if (config->settings[index].origin == CONFIG_FROM_FILE && config->name) {
        snprintf(out, size, "%.200s: %s", config->name, key->path);
    } else {
        snprintf(out, size, "%s", key->path);
    }
    return out;
}

char *config_path_where(const sifr_config *config, const char *path, char out[300]) {
    size_t index;
    if (!config_key_find(path, &index)) {
        snprintf(out, 300, "%s", path);
        return out;
    }
    return config_setting_where(config, index, out, 300);
}
