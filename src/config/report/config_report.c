/* What a config does, key by key, and the config that repeats a run. */
#include <stdio.h>
#include <string.h>

#include "config/config_private.h"

/* The value that counts: the resolved one, or what was given where nothing is resolved yet. */
static const json_t *config_shown(const config_setting *setting) {
    return setting->value ? setting->value : setting->given;
}

static void config_say_gated(const sifr_config *config, const config_key *key,
                             const config_key *gate, char *out, size_t size) {
    char text[128];
    size_t above;
    config_key_find(gate->path, &above);
    const json_t *value = config_shown(&config->settings[above]);
    snprintf(out, size, "no effect, since %s is %s%s", gate->path,
             value ? config_value_text(value, text, sizeof text) : "not given",
             config_acts_on_gpus(config, key) ? " (on GPUs it has one)" : "");
}

static void config_explain_key(const sifr_config *config, size_t index, char *line, size_t size) {
    const config_key *key = config_key_at(index), *gate;
    const config_setting *setting = &config->settings[index];
    char text[128], flag[64], from[240];
    bool by_flag = setting->origin == CONFIG_FROM_FLAG && config_key_flag_name(key, flag);
    bool was_auto = config_value_is_auto(setting->given) && setting->value &&
                    !config_value_is_auto(setting->value);
    from[0] = 0;
    if (by_flag || was_auto || config_note_of(setting)[0]) {
        snprintf(from, sizeof from, " (%s%s%s%s%s)", by_flag ? "--" : "", by_flag ? flag : "",
                 was_auto ? "auto" : "",
                 (by_flag || was_auto) && config_note_of(setting)[0] ? ": " : "",
                 config_note_of(setting));
    }
    config_verdict verdict = config_setting_verdict(config, index, &gate);
    bool resolved = verdict == CONFIG_ACTS;
    const json_t *shown = resolved ? config_shown(setting) : setting->given;
    if (shown && config_is_secret(key, shown))
        snprintf(text, sizeof text, "(not shown)");
    else if (shown)
        config_value_text(shown, text, sizeof text);
    else
        snprintf(text, sizeof text, "not given");
    size_t used = (size_t)snprintf(line, size, "%s = %s%s: ", key->path, text,
                                   resolved || by_flag ? from : "");
    if (used >= size) return;
    switch (verdict) {
    case CONFIG_ACTS:
        snprintf(line + used, size - used, "%s", key->doc);
        break;
    case CONFIG_NO_MATTER:
        snprintf(line + used, size - used, "accepted without effect: %s", key->doc);
        break;
    case CONFIG_NEUTRAL:
        snprintf(line + used, size - used,
                 "asks for nothing; other values are not supported yet (%s)", key->doc);
        break;
    case CONFIG_GATED:
        config_say_gated(config, key, gate, line + used, size - used);
        break;
    case CONFIG_ALIASED:
        snprintf(line + used, size - used, "another name of %s, which has the value", key->alias);
        break;
    case CONFIG_REFUSED:
        snprintf(line + used, size - used, "refused: not supported yet (%s)", key->doc);
        break;
    }
}

/* Why what is given has no effect: other keys say it, or the one that it belongs to is off. */
static bool config_say_idle(const sifr_config *config, size_t index, char *out, size_t size) {
    static const char idle[] = "no effect, ";
    const config_key *gate;
    const char *note = config_note_of(&config->settings[index]);
    if (strncmp(note, idle, sizeof idle - 1) == 0) {
        snprintf(out, size, "%s", note);
        return true;
    }
    config_verdict verdict = config_setting_verdict(config, index, &gate);
    if (!config_differs(config, index)) return false;
    if (verdict == CONFIG_NO_MATTER) {
        snprintf(out, size, "no effect: %s", config_key_at(index)->doc);
        return true;
    }
    if (verdict != CONFIG_GATED) return false;
    config_say_gated(config, config_key_at(index), gate, out, size);
    return true;
}

void config_explain_idle(const sifr_config *config, config_line *write, void *user) {
    for (size_t i = 0; i < config_key_count(); i++) {
        const config_setting *setting = &config->settings[i];
        const char *path = config_key_at(i)->path;
        char line[1100], where[300], text[128], why[512];
        bool said = setting->origin == CONFIG_FROM_FLAG || strncmp(path, "sifr.", 5) == 0 ||
                    config_key_at(i)->told;
        if (!setting->given || !said || !config_say_idle(config, i, why, sizeof why)) continue;
        snprintf(line, sizeof line, "%s %s: %s",
                 config_setting_where(config, i, where, sizeof where),
                 config_value_text(setting->given, text, sizeof text), why);
        write(user, line);
    }
}

static void config_write_key(const sifr_config *config, size_t index, config_line *write,
                             void *user) {
    char line[1400];
    config_explain_key(config, index, line, sizeof line);
    const char *departure = config->resolved ? config_departure(config, index) : NULL;
    size_t used = strlen(line);
    if (departure) snprintf(line + used, sizeof line - used, " [DeepSpeed: %s]", departure);
    write(user, line);
}

/* A default that does something in this config; most do not. */
static bool config_default_acts(const sifr_config *config, size_t index) {
    const config_key *key = config_key_at(index);
    const config_setting *setting = &config->settings[index];
    if (key->type == CONFIG_SECTION || setting->given || key->over) return false;
    return config_setting_verdict(config, index, NULL) == CONFIG_ACTS &&
           config_setting_applies(config, index) && setting->value;
}

/* What the config gives, and what follows from that, as one of the three batch keys. */
static bool config_is_users(const sifr_config *config, size_t index) {
    const char *note = config_note_of(&config->settings[index]);
    if (config->settings[index].given) return true;
    bool plain = strcmp(note, "default") == 0 || strncmp(note, "default at ", 11) == 0 ||
                 strncmp(note, "no effect", 9) == 0;
    return config_default_acts(config, index) && note[0] && !plain;
}

static bool config_default_departs(const sifr_config *config, size_t index) {
    bool section = config_key_at(index)->type == CONFIG_SECTION;
    return !section && !config_is_users(config, index) && config->resolved &&
           config_departure(config, index);
}

/* Neither of both. */
static bool config_is_other(const sifr_config *config, size_t index) {
    return config_default_acts(config, index) && !config_is_users(config, index) &&
           !config_default_departs(config, index);
}

void config_explain(const sifr_config *config, bool all, config_line *write, void *user) {
    char line[320];
    size_t others = 0, departs = 0;
    for (size_t i = 0; i < config_key_count(); i++)
        if (config_is_users(config, i)) config_write_key(config, i, write, user);
    const char *path;
    for (size_t i = 0; (path = config_ignored(config, i)) != NULL; i++) {
        snprintf(line, sizeof line, "%s: ignored, since its name begins with _", path);
        write(user, line);
    }
    for (size_t i = 0; i < config_key_count(); i++) {
        others += config_is_other(config, i);
        if (!config_default_departs(config, i)) continue;
        if (departs++ == 0) write(user, "Not given, and other than DeepSpeed's default:");
        config_write_key(config, i, write, user);
    }
    if (!others) return;
    snprintf(line, sizeof line, "%zu more key%s at the default%s", others,
             others == 1 ? " is" : "s are", all ? ":" : "; --dry-run=all lists them");
    write(user, line);
    for (size_t i = 0; all && i < config_key_count(); i++)
        if (config_is_other(config, i)) config_write_key(config, i, write, user);
}

bool config_put_path(json_t *root, const char *path, json_t *value) {
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

/* `all`: also what is given and has no effect. */
static json_t *config_collect(const sifr_config *config, bool all) {
    json_t *root = json_object();
    for (size_t i = 0; root && i < config_key_count(); i++) {
        const config_key *key = config_key_at(i);
        const config_setting *setting = &config->settings[i];
        bool mine = key->type != CONFIG_SECTION && !config_is_secret(key, setting->given) &&
                    key->status != CONFIG_ALIAS && !key->over &&
                    strcmp(key->path, "sifr.resume") != 0;
        if (!mine || !config_setting_applies(config, i)) continue;
        bool acts = config_setting_verdict(config, i, NULL) == CONFIG_ACTS;
        const json_t *value = acts || (all && config_value_is_auto(setting->given))
                                  ? config_shown(setting)
                              : all ? setting->given
                                    : NULL;
        if (value && !config_put_path(root, key->path, (json_t *)value)) {
            json_decref(root);
            return NULL;
        }
    }
    return root;
}

json_t *config_effective(const sifr_config *config) {
    return config_collect(config, true);
}

json_t *config_acting(const sifr_config *config) {
    return config_collect(config, false);
}

json_t *config_fallbacks(const char *section) {
    json_t *root = json_object();
    size_t length = strlen(section);
    for (size_t i = 0; root && i < config_key_count(); i++) {
        const config_key *key = config_key_at(i);
        bool inside = strncmp(key->path, section, length) == 0 && key->path[length] == '.';
        json_t *value = inside ? config_value_default(key) : NULL;
        bool put = !value || config_put_path(root, key->path + length + 1, value);
        json_decref(value);
        if (put) continue;
        json_decref(root);
        return NULL;
    }
    return root;
}

bool config_flag_at(size_t index, config_flag *flag) {
    for (size_t i = 0; i < config_key_count(); i++) {
        const config_key *key = config_key_at(i);
        if (!config_key_flag_name(key, flag->name)) continue;
        if (index-- > 0) continue;
        flag->path = key->path;
        flag->argument = key->type == CONFIG_BOOL ? NULL : key->argument;
        flag->many = key->type == CONFIG_TEXTS;
        flag->fallback = key->fallback;
        flag->doc = key->doc;
        flag->group = key->group;
        return true;
    }
    return false;
}
