/* From a flag to a setting. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "config/config_private.h"

enum { FLAG_PATH = 256 };

static sifr_status config_count_from_text(const char *text, const char *where, json_t **out,
                                          sifr_error *error) {
    int64_t count;
    bool minus = text[0] == '-' && isdigit((unsigned char)text[1]);
    BASE_TRY(base_parse_count(text + minus, where, &count, error));
    *out = json_integer(minus ? -count : count);
    return SIFR_OK;
}

/* The value of a flag's text, as config_value_check; NULL stands for true. */
static sifr_status config_flag_value(const config_key *key, const char *text, const char *where,
                                     json_t **out, sifr_error *error) {
    json_t *value = NULL;
    double number;
    if (!text) {
        if (key->type != CONFIG_BOOL) {
            return base_fail(error, SIFR_USAGE, "%s needs a value", where);
        }
        *out = json_true();
        return SIFR_OK;
    }
    bool plain = key->type == CONFIG_TEXT || key->type == CONFIG_TEXTS ||
                 key->type == CONFIG_CHOICE || key->type == CONFIG_BYTES;
    if (plain || strcmp(text, "auto") == 0) {
        value = json_string(text);
        if (!value) {
            return base_fail(error, SIFR_USAGE, "%s: the value is not valid UTF-8; rename it",
                             where);
        }
    } else if (key->type == CONFIG_INT) {
        BASE_TRY(config_count_from_text(text, where, &value, error));
    } else if (key->type == CONFIG_NUMBER) {
        BASE_TRY(base_parse_double(text, where, &number, error));
        value = json_real(number);
    } else if (key->type == CONFIG_ANY && (text[0] == '{' || text[0] == '[')) {
        BASE_TRY(config_read_text(text, strlen(text), where, &value, error));
    } else {
        value = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
        if (!value) value = json_string(text);
    }
    if (!value) {
        char quoted[96];
        return base_fail(error, SIFR_USAGE, "%s: %s is not a value", where,
                         config_quote(text, quoted, sizeof quoted));
    }
    sifr_status status = config_value_check(key, value, where, out, error);
    json_decref(value);
    return status;
}

static const config_key *config_find_flag(const char *name, size_t *index) {
    char flag[64], wanted[64];
    snprintf(wanted, sizeof wanted, "%s", name);
    for (char *c = wanted; *c; c++) {
        if (*c == '_') *c = '-';
    }
    for (size_t i = 0; i < config_key_count() && strlen(name) < 64; i++) {
        if (config_key_flag_name(config_key_at(i), flag) && strcmp(flag, wanted) == 0) {
            *index = i;
            return config_key_at(i);
        }
    }
    return config_key_find(name, index);
}

static sifr_status config_unknown_flag(const char *name, sifr_error *error) {
    enum { MOST = 256 };
    char flags[MOST][64], quoted[80];
    const char *candidates[MOST];
    size_t count = 0;
    for (size_t i = 0; i < config_key_count() && count < MOST; i++) {
        if (!config_key_flag_name(config_key_at(i), flags[count])) continue;
        candidates[count] = flags[count];
        count++;
    }
    const char *bare = name + strspn(name, "-");
    config_quote(name, quoted, sizeof quoted);
    if (bare != name && config_find_flag(bare, &count))
        return base_fail(error, SIFR_USAGE, "unknown flag %s; leave the dashes before it out",
                         quoted);
    const char *near = base_nearest(name, candidates, count);
    if (!near)
        return base_fail(error, SIFR_USAGE,
                         "unknown flag %s; docs/config.md lists every flag that is known", quoted);
    return base_fail(error, SIFR_USAGE, "unknown flag %s; did you mean --%s?", quoted, near);
}

sifr_status config_value_json(const sifr_config *config, const char *name, char **out,
                              sifr_error *error) {
    size_t index;
    const config_key *key = config_find_flag(name, &index);
    if (!key) return config_unknown_flag(name, error);
    if (key->status == CONFIG_ALIAS || key->type == CONFIG_SECTION)
        return base_fail(error, SIFR_USAGE, "%s has no value of its own; ask for %s", key->path,
                         key->status == CONFIG_ALIAS && key->alias && key->alias[0]
                             ? key->alias
                             : "one of its keys");
    /* A flag that gives another key its value has none itself where the file gives it. */
    if (key->over) config_key_find(key->over, &index);
    const json_t *value = config->settings[index].value;
    *out = value ? base_json_text(value) : strdup("null");
    return *out ? SIFR_OK : base_fail_alloc(error, 64);
}

/* The key that a flag of this name sets. */
static sifr_status config_flag_key(const char *name, const config_key **key, size_t *index,
                                   sifr_error *error) {
    *key = config_find_flag(name, index);
    if (!*key) return config_unknown_flag(name, error);
    if ((*key)->status != CONFIG_ALIAS && (*key)->type != CONFIG_SECTION) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s cannot be set by a flag; put it into the config",
                     (*key)->path);
}

sifr_status config_clear(sifr_config *config, const char *name, sifr_error *error) {
    size_t index;
    const config_key *key;
    BASE_TRY(config_flag_key(name, &key, &index, error));
    config_setting *setting = &config->settings[index];
    json_decref(setting->given);
    setting->given = NULL;
    setting->origin = CONFIG_NOT_GIVEN;
    config->resolved = false;
    return SIFR_OK;
}

sifr_status config_set(sifr_config *config, const char *name, const char *text, sifr_error *error) {
    size_t index;
    char where[FLAG_PATH], flag[64];
    json_t *value;
    const config_key *key;
    BASE_TRY(config_flag_key(name, &key, &index, error));
    bool named = config_key_flag_name(key, flag);
    snprintf(where, sizeof where, "%s%s", named ? "--" : "", named ? flag : key->path);
    BASE_TRY(config_flag_value(key, text, where, &value, error));
    config_setting *setting = &config->settings[index];
    if (key->type == CONFIG_TEXTS && setting->origin == CONFIG_FROM_FLAG) {
        int failed = json_array_extend(setting->given, value);
        json_decref(value);
        if (failed) return base_fail_alloc(error, 64);
    } else {
        json_decref(setting->given);
        setting->given = value;
        setting->origin = CONFIG_FROM_FLAG;
    }
    config->resolved = false;
    return SIFR_OK;
}
