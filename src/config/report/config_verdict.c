/* What becomes of a value: done, without effect, of a feature that is off, or refused. */
#include <stdio.h>
#include <string.h>

#include "config/config_private.h"

/* Whether a value without rows of its own asks for something: "enabled": true anywhere inside,
 * or, where nothing in it is called "enabled", anything at all. */
static bool config_has_enabled(const json_t *value, bool wanted) {
    const char *name;
    json_t *member;
    size_t i;
    json_object_foreach((json_t *)value, name, member) {
        if (strcmp(name, "enabled") == 0 && (!wanted || json_is_true(member))) return true;
        if (config_has_enabled(member, wanted)) return true;
    }
    json_array_foreach(value, i, member) {
        if (config_has_enabled(member, wanted)) return true;
    }
    return false;
}

static bool config_any_asks(const json_t *value) {
    if (json_is_null(value) || json_is_false(value)) return false;
    if (json_is_object(value) && json_object_size(value) == 0) return false;
    if (json_is_array(value) && json_array_size(value) == 0) return false;
    if (json_is_object(value) && config_has_enabled(value, false)) {
        return config_has_enabled(value, true);
    }
    return true;
}

static bool config_differs_from_default(const config_key *key, const json_t *value) {
    json_t *fallback = config_value_default(key);
    bool differs = !fallback || !config_value_equal(value, fallback);
    json_decref(fallback);
    return differs;
}

bool config_differs(const sifr_config *config, size_t index) {
    const json_t *given = config->settings[index].given;
    return given && config_differs_from_default(config_key_at(index), given);
}

bool config_changes(const sifr_config *config, const char *path) {
    size_t index;
    return config_gives(config, path) && config_key_find(path, &index) &&
           config_differs(config, index);
}

static bool config_switched_on(const sifr_config *config, const config_key *gate, bool *said) {
    size_t index;
    config_key_find(gate->path, &index);
    const json_t *given = config->settings[index].given;
    *said = given != NULL;
    return given && !config_value_is_auto(given) && config_differs_from_default(gate, given);
}

static config_verdict config_not_built(const sifr_config *config, const config_key *key,
                                       const json_t *value, const config_key **gate) {
    char text[128];
    if (config_value_is_auto(value)) return CONFIG_NEUTRAL;
    if (key->type == CONFIG_ANY && !config_any_asks(value)) return CONFIG_NEUTRAL;
    const config_key *above = config_key_gate(key);
    bool said = false, on = above && config_switched_on(config, above, &said);
    if (above && !on && (said || !key->ungated)) {
        *gate = above;
        return CONFIG_GATED;
    }
    if (!config_differs_from_default(key, value)) return CONFIG_NEUTRAL;
    config_value_text(value, text, sizeof text);
    const char *word = json_is_string(value) ? json_string_value(value) : text;
    if (key->neutral && config_key_has_word(key->neutral, word, NULL, NULL)) return CONFIG_NEUTRAL;
    return CONFIG_REFUSED;
}

static bool config_has_value(const sifr_config *config, const char *path, const char *wanted) {
    char text[64];
    const config_setting *setting = config_setting_at(config, path);
    const json_t *value = setting->value ? setting->value : setting->given;
    return value && strcmp(config_value_text(value, text, sizeof text), wanted) == 0;
}

/* Whether a section is on without its "enabled", since another of its keys says so. */
static bool config_implied_on(const sifr_config *config, const config_key *gate) {
    const config_setting *setting = config_setting_at(config, gate->path);
    return gate->type == CONFIG_BOOL && json_is_true(setting->value) &&
           config_differs_from_default(gate, setting->value);
}

/* Whether the gate of a built key has the value that opens it. */
static bool config_gate_open(const sifr_config *config, const config_key *key,
                             const config_key *above) {
    bool said;
    if (!key->opens)
        return config_switched_on(config, above, &said) || config_implied_on(config, above);
    bool open = config_has_value(config, above->path, key->opens);
    for (int i = 0; i < 3 && key->also[i]; i++)
        open |= config_has_value(config, key->also[i], key->opens);
    return open;
}

bool config_acts_on_gpus(const sifr_config *config, const config_key *key) {
    bool cpu = key->host && config_has_value(config, key->gate, "\"cpu\"");
    for (int i = 0; key->host && i < 3 && key->also[i]; i++)
        cpu |= config_has_value(config, key->also[i], "\"cpu\"");
    return cpu;
}

/* A built key of a feature that is not switched on. */
static bool config_gated(const sifr_config *config, const config_key *key,
                         const config_key **gate) {
    const config_key *above = config_key_gate(key);
    if (!above || config_gate_open(config, key, above)) return false;
    *gate = above;
    return true;
}

config_verdict config_setting_verdict(const sifr_config *config, size_t index,
                                      const config_key **gate) {
    const config_key *key = config_key_at(index);
    const json_t *value = config->settings[index].given;
    const config_key *unused;
    if (!gate) gate = &unused;
    *gate = NULL;
    switch (key->status) {
    case CONFIG_NO_EFFECT:
        return CONFIG_NO_MATTER;
    case CONFIG_ALIAS:
        return CONFIG_ALIASED;
    case CONFIG_BUILT:
        if (value && key->later && !config_value_is_auto(value)) {
            char text[96];
            config_value_text(value, text, sizeof text);
            const char *word = json_is_string(value) ? json_string_value(value) : text;
            if (config_key_has_word(key->later, word, NULL, NULL)) return CONFIG_REFUSED;
        }
        return config_gated(config, key, gate) ? CONFIG_GATED : CONFIG_ACTS;
    case CONFIG_LATER:
    case CONFIG_REMOVED:
        break;
    }
    return value ? config_not_built(config, key, value, gate) : CONFIG_NEUTRAL;
}

/* "AdamW, Adam": the choices of a built key that are not in `later`. */
static void config_built_choices(const config_key *key, char *out, size_t size) {
    size_t used = 0;
    out[0] = 0;
    for (const char *word = key->choices; word && used < size;) {
        const char *end = strchr(word, '|');
        int length = end ? (int)(end - word) : (int)strlen(word);
        char name[64];
        snprintf(name, sizeof name, "%.*s", length, word);
        if (!config_key_has_word(key->later, name, NULL, NULL)) {
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", name);
        }
        word = end ? end + 1 : NULL;
    }
}

/* Whether it is a choice that DeepSpeed itself no longer has. */
static bool config_is_removed(const sifr_config *config, size_t index) {
    const char *removed = config_key_at(index)->removed;
    const char *word = json_string_value(config->settings[index].given);
    return removed && word && config_key_has_word(removed, word, NULL, NULL);
}

static sifr_status config_refuse(const sifr_config *config, size_t index, sifr_error *error) {
    const config_key *key = config_key_at(index);
    char where[300], text[128], built[320], instead[200];
    config_setting_where(config, index, where, sizeof where);
    if (key->secret)
        snprintf(text, sizeof text, "given");
    else
        config_value_text(config->settings[index].given, text, sizeof text);
    if (key->status == CONFIG_BUILT) {
        config_built_choices(key, built, sizeof built);
        return base_fail(
            error, SIFR_USAGE, "%s is %s, which %s (supported: %s); choose one that is supported",
            where, text,
            config_is_removed(config, index) ? "DeepSpeed took out in 0.19.8, and is not supported"
                                             : "is not supported yet",
            built);
    }
    if (key->fallback) {
        snprintf(instead, sizeof instead, "set it to %s or leave it out", key->fallback);
    } else {
        snprintf(instead, sizeof instead, "leave it out");
    }
    if (key->status == CONFIG_REMOVED) {
        return base_fail(error, SIFR_USAGE, "%s is %s, which is refused: %s So %s", where, text,
                         key->doc, instead);
    }
    return base_fail(error, SIFR_USAGE, "%s is %s, which is not supported yet; %s (%s)", where,
                     text, instead, key->doc);
}

/* Whether the key's switch, or the type that has this parameter, is refused itself: one fault. */
static bool config_goes_with_another(const sifr_config *config, const config_key *key) {
    const config_key *above = config_key_gate(key);
    size_t index;
    char section[128];
    snprintf(section, sizeof section, "%.*s", (int)(config_key_leaf(key) - key->path), key->path);
    if (strcmp(section, "optimizer.params.") == 0) above = config_key_find("optimizer.type", NULL);
    if (section[0]) section[strlen(section) - 1] = 0;
    if (!above) above = config_key_find(section, NULL);
    if (!above || !config_key_find(above->path, &index)) return false;
    return config->settings[index].given &&
           config_setting_verdict(config, index, NULL) == CONFIG_REFUSED;
}

sifr_status config_verify_into(const sifr_config *config, config_faults *faults) {
    sifr_error error;
    for (size_t i = 0; i < config_key_count(); i++) {
        if (!config->settings[i].given) continue;
        bool refused = config_setting_verdict(config, i, NULL) == CONFIG_REFUSED;
        if (refused && !config_goes_with_another(config, config_key_at(i))) {
            BASE_TRY(config_faults_add(faults, config_refuse(config, i, &error), &error));
        }
    }
    return SIFR_OK;
}

sifr_status config_verify(const sifr_config *config, sifr_error *error) {
    config_faults faults = {0};
    BASE_TRY(config_verify_into(config, &faults));
    return config_faults_end(&faults, error);
}

static const char *config_type_of(const sifr_config *config, const char *path) {
    const json_t *value = config_setting_at(config, path)->value;
    return json_is_string(value) ? json_string_value(value) : NULL;
}

bool config_setting_applies(const sifr_config *config, size_t index) {
    const config_key *key = config_key_at(index);
    if (strncmp(key->path, "scheduler.params.", 17) == 0) {
        const char *type = config_type_of(config, "scheduler.type");
        return type && (!key->only || config_key_has_word(key->only, type, NULL, NULL));
    }
    if (!key->only) return true;
    const char *type = config_type_of(config, "optimizer.type");
    return type && config_key_has_word(key->only, type, NULL, NULL);
}
