/* What a config does, key by key, and the config that repeats a run. */
#include <stdio.h>
#include <string.h>

#include "config/config_private.h"

/* The value that counts: the resolved one, or what was given where nothing is resolved yet. */
static const json_t *train_shown(const train_setting *setting) {
    return setting->value ? setting->value : setting->given;
}

static void train_explain_key(const train_config *config, size_t index, char *line, size_t size) {
    const train_key *key = train_key_at(index), *gate;
    const train_setting *setting = &config->settings[index];
    char text[128], flag[64], from[240];
    bool by_flag = setting->origin == TRAIN_FROM_FLAG && train_key_flag_name(key, flag);
    bool was_auto = train_value_is_auto(setting->given) && setting->value &&
                    !train_value_is_auto(setting->value);
    from[0] = 0;
    if (by_flag || was_auto || setting->note[0]) {
        snprintf(from, sizeof from, " (%s%s%s%s%s)", by_flag ? "--" : "", by_flag ? flag : "",
                 was_auto ? "auto" : "", (by_flag || was_auto) && setting->note[0] ? ": " : "",
                 setting->note);
    }
    train_verdict verdict = train_setting_verdict(config, index, &gate);
    bool resolved = verdict == TRAIN_ACTS;
    train_value_text(resolved ? train_shown(setting) : setting->given, text, sizeof text);
    size_t used = (size_t)snprintf(line, size, "%s = %s%s: ", key->path, text,
                                   resolved || by_flag ? from : "");
    if (used >= size) return;
    switch (verdict) {
    case TRAIN_ACTS:
        snprintf(line + used, size - used, "%s", key->doc);
        break;
    case TRAIN_NO_MATTER:
        snprintf(line + used, size - used, "accepted without effect: %s", key->doc);
        break;
    case TRAIN_NEUTRAL:
        snprintf(line + used, size - used, "asks for nothing; other values are not built yet (%s)",
                 key->doc);
        break;
    case TRAIN_GATED: {
        size_t above;
        train_key_find(gate->path, &above);
        const json_t *value = train_shown(&config->settings[above]);
        snprintf(line + used, size - used, "no effect, since %s is %s", gate->path,
                 value ? train_value_text(value, text, sizeof text) : "not given");
        break;
    }
    case TRAIN_ALIASED:
        snprintf(line + used, size - used, "old name of %s, which has the value", key->alias);
        break;
    case TRAIN_REFUSED:
        snprintf(line + used, size - used, "refused: not built yet (%s)", key->doc);
        break;
    }
}

void train_config_explain(const train_config *config, train_config_line *write, void *user) {
    for (size_t i = 0; i < train_key_count(); i++) {
        const train_key *key = train_key_at(i);
        const train_setting *setting = &config->settings[i];
        if (key->type == TRAIN_SECTION && !setting->given) continue;
        bool acts = train_setting_verdict(config, i, NULL) == TRAIN_ACTS &&
                    train_setting_applies(config, i) &&
                    (setting->value || train_value_is_auto(setting->given));
        if (!setting->given && !acts) continue;
        char line[1024];
        train_explain_key(config, i, line, sizeof line);
        write(user, line);
    }
}

/* Sets root.a.b.c, making the objects on the way. */
static bool train_put_path(json_t *root, const char *path, json_t *value) {
    const char *dot;
    json_t *object = root;
    for (; (dot = strchr(path, '.')) != NULL; path = dot + 1) {
        char part[64];
        snprintf(part, sizeof part, "%.*s", (int)(dot - path), path);
        json_t *next = json_object_get(object, part);
        if (!next) {
            next = json_object();
            if (json_object_set_new(object, part, next) != 0) return false;
        }
        object = next;
    }
    return json_object_set(object, path, value) == 0;
}

json_t *train_config_effective(const train_config *config) {
    json_t *root = json_object();
    for (size_t i = 0; root && i < train_key_count(); i++) {
        const train_key *key = train_key_at(i);
        const train_setting *setting = &config->settings[i];
        bool mine = key->type != TRAIN_SECTION && key->status != TRAIN_ALIAS && !key->over &&
                    strcmp(key->path, "sifr.resume") != 0;
        if (!mine || !train_setting_applies(config, i)) continue;
        bool acts = train_setting_verdict(config, i, NULL) == TRAIN_ACTS;
        const json_t *value = acts ? train_shown(setting) : setting->given;
        if (value && !train_put_path(root, key->path, (json_t *)value)) {
            json_decref(root);
            return NULL;
        }
    }
    return root;
}

bool train_config_flag(size_t index, train_flag *flag) {
    for (size_t i = 0; i < train_key_count(); i++) {
        const train_key *key = train_key_at(i);
        if (!train_key_flag_name(key, flag->name)) continue;
        if (index-- > 0) continue;
        flag->path = key->path;
        flag->argument = key->type == TRAIN_BOOL ? NULL : key->argument;
        flag->many = key->type == TRAIN_TEXTS;
        flag->fallback = key->fallback;
        flag->doc = key->doc;
        return true;
    }
    return false;
}
