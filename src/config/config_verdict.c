/* What becomes of a value: done, without effect, of a feature that is off, or refused. */
#include <stdio.h>
#include <string.h>

#include "config/config_private.h"

/* Whether a value without rows of its own asks for something: "enabled": true anywhere inside,
 * or, where nothing in it is called "enabled", anything at all. */
static bool train_has_enabled(const json_t *value, bool wanted) {
    const char *name;
    json_t *member;
    size_t i;
    json_object_foreach((json_t *)value, name, member) {
        if (strcmp(name, "enabled") == 0 && (!wanted || json_is_true(member))) return true;
        if (train_has_enabled(member, wanted)) return true;
    }
    json_array_foreach(value, i, member) {
        if (train_has_enabled(member, wanted)) return true;
    }
    return false;
}

static bool train_any_asks(const json_t *value) {
    if (json_is_null(value) || json_is_false(value)) return false;
    if (json_is_object(value) && json_object_size(value) == 0) return false;
    if (json_is_array(value) && json_array_size(value) == 0) return false;
    if (json_is_object(value) && train_has_enabled(value, false)) {
        return train_has_enabled(value, true);
    }
    return true;
}

static bool train_differs_from_default(const train_key *key, const json_t *value) {
    json_t *fallback = train_value_default(key);
    bool differs = !fallback || !train_value_equal(value, fallback);
    json_decref(fallback);
    return differs;
}

static bool train_switched_on(const train_config *config, const train_key *gate, bool *said) {
    size_t index;
    train_key_find(gate->path, &index);
    const json_t *given = config->settings[index].given;
    *said = given != NULL;
    return given && !train_value_is_auto(given) && train_differs_from_default(gate, given);
}

static train_verdict train_not_built(const train_config *config, const train_key *key,
                                     const json_t *value, const train_key **gate) {
    char text[128];
    if (train_value_is_auto(value)) return TRAIN_NEUTRAL;
    if (key->type == TRAIN_ANY && !train_any_asks(value)) return TRAIN_NEUTRAL;
    const train_key *above = train_key_gate(key);
    bool said = false, on = above && train_switched_on(config, above, &said);
    if (above && !on && (said || !key->ungated)) {
        *gate = above;
        return TRAIN_GATED;
    }
    if (!train_differs_from_default(key, value)) return TRAIN_NEUTRAL;
    train_value_text(value, text, sizeof text);
    const char *word = json_is_string(value) ? json_string_value(value) : text;
    if (key->neutral && train_key_has_word(key->neutral, word, NULL, NULL)) return TRAIN_NEUTRAL;
    return TRAIN_REFUSED;
}

static bool train_has_value(const train_config *config, const char *path, const char *wanted) {
    char text[64];
    const train_setting *setting = train_setting_at(config, path);
    const json_t *value = setting->value ? setting->value : setting->given;
    return value && strcmp(train_value_text(value, text, sizeof text), wanted) == 0;
}

/* Whether the gate of a built key has the value that opens it. */
static bool train_gate_open(const train_config *config, const train_key *key,
                            const train_key *above) {
    bool said;
    if (!key->opens) return train_switched_on(config, above, &said);
    bool open = train_has_value(config, above->path, key->opens);
    for (int i = 0; i < 3 && key->also[i]; i++)
        open |= train_has_value(config, key->also[i], key->opens);
    return open;
}

/* A built key of a feature that is not switched on. */
static bool train_gated(const train_config *config, const train_key *key, const train_key **gate) {
    const train_key *above = train_key_gate(key);
    if (!above || train_gate_open(config, key, above)) return false;
    *gate = above;
    return true;
}

train_verdict train_setting_verdict(const train_config *config, size_t index,
                                    const train_key **gate) {
    const train_key *key = train_key_at(index);
    const json_t *value = config->settings[index].given;
    const train_key *unused;
    if (!gate) gate = &unused;
    *gate = NULL;
    switch (key->status) {
    case TRAIN_NO_EFFECT:
        return TRAIN_NO_MATTER;
    case TRAIN_ALIAS:
        return TRAIN_ALIASED;
    case TRAIN_BUILT:
        if (value && key->later && !train_value_is_auto(value)) {
            char text[96];
            train_value_text(value, text, sizeof text);
            const char *word = json_is_string(value) ? json_string_value(value) : text;
            if (train_key_has_word(key->later, word, NULL, NULL)) return TRAIN_REFUSED;
        }
        return train_gated(config, key, gate) ? TRAIN_GATED : TRAIN_ACTS;
    case TRAIN_LATER:
    case TRAIN_REMOVED:
        break;
    }
    return value ? train_not_built(config, key, value, gate) : TRAIN_NEUTRAL;
}

/* "AdamW, Adam": the choices of a built key that are not in `later`. */
static void train_built_choices(const train_key *key, char *out, size_t size) {
    size_t used = 0;
    out[0] = 0;
    for (const char *word = key->choices; word && used < size;) {
        const char *end = strchr(word, '|');
        int length = end ? (int)(end - word) : (int)strlen(word);
        char name[64];
        snprintf(name, sizeof name, "%.*s", length, word);
        if (!train_key_has_word(key->later, name, NULL, NULL)) {
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", name);
        }
        word = end ? end + 1 : NULL;
    }
}

static sifr_status train_refuse(const train_config *config, size_t index, sifr_error *error) {
    const train_key *key = train_key_at(index);
    char where[300], text[128], built[200], instead[200];
    train_setting_where(config, index, where, sizeof where);
    train_value_text(config->settings[index].given, text, sizeof text);
    if (key->status == TRAIN_BUILT) {
        train_built_choices(key, built, sizeof built);
        return base_fail(error, SIFR_USAGE,
                         "%s is %s, which is not built yet (built: %s); choose one that is built",
                         where, text, built);
    }
    if (key->fallback) {
        snprintf(instead, sizeof instead, "set it to %s or leave it out", key->fallback);
    } else {
        snprintf(instead, sizeof instead, "leave it out");
    }
    if (key->status == TRAIN_REMOVED) {
        return base_fail(error, SIFR_USAGE, "%s is %s, which is refused: %s So %s", where, text,
                         key->doc, instead);
    }
    return base_fail(error, SIFR_USAGE, "%s is %s, which is not built yet; %s (%s)", where, text,
                     instead, key->doc);
}

sifr_status train_config_verify(const train_config *config, sifr_error *error) {
    for (size_t i = 0; i < train_key_count(); i++) {
        if (!config->settings[i].given) continue;
        if (train_setting_verdict(config, i, NULL) == TRAIN_REFUSED) {
            return train_refuse(config, i, error);
        }
    }
    return SIFR_OK;
}

static const char *train_type_of(const train_config *config, const char *path) {
    const json_t *value = train_setting_at(config, path)->value;
    return json_is_string(value) ? json_string_value(value) : NULL;
}

bool train_setting_applies(const train_config *config, size_t index) {
    const train_key *key = train_key_at(index);
    if (strncmp(key->path, "scheduler.params.", 17) == 0) {
        const char *type = train_type_of(config, "scheduler.type");
        return type && (!key->only || train_key_has_word(key->only, type, NULL, NULL));
    }
    if (!key->only) return true;
    const char *type = train_type_of(config, "optimizer.type");
    return type && train_key_has_word(key->only, type, NULL, NULL);
}
