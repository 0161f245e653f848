/* From a config file to settings: unknown keys, old names, types. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/file.h"
#include "base/heap.h"
#include "base/json.h"
#include "base/text.h"
#include "config/config_private.h"

enum { CONFIG_LIMIT = 16 << 20, CONFIG_PATH = 256 };

sifr_status config_create(sifr_config *config, sifr_error *error) {
    memset(config, 0, sizeof *config);
    return base_alloc(config_key_count() + 1, sizeof *config->settings, &config->settings, error);
}

void config_free(sifr_config *config) {
    for (size_t i = 0; config->settings && i < config_key_count(); i++) {
        json_decref(config->settings[i].given);
        json_decref(config->settings[i].value);
    }
    free(config->settings);
    free(config->notes);
    json_decref(config->ignored);
    free(config->name);
    free(config->data_list);
    free(config->source_list);
    json_decref(config->fields_made);
    free(config->group_list);
    free(config->freeze_list);
    free(config->label_list);
    memset(config, 0, sizeof *config);
}

/* Whether `path` is a member of the section `prefix` ("" is the top level). */
static bool config_is_member(const char *path, const char *prefix) {
    size_t length = strlen(prefix);
    if (length == 0) return !strchr(path, '.');
    return strncmp(path, prefix, length) == 0 && path[length] == '.' &&
           !strchr(path + length + 1, '.');
}

/* Whether a message may lead to it: not to an old name, nor to what is refused with any value. */
static bool config_is_hint(const config_key *key) {
    return key->status != CONFIG_ALIAS && key->status != CONFIG_REMOVED;
}

/* Whether one of two sections lies in the other: a name that is misspelt is looked for only in
 * sections where it can have been meant, since every short word is near to a key of some section.
 */
static bool config_lies_with(const char *path, const char *leaf, const char *prefix) {
    size_t own = leaf == path ? 0 : (size_t)(leaf - path - 1), other = strlen(prefix);
    size_t shorter = own < other ? own : other;
    const char *longer = own < other ? prefix : path;
    return strncmp(path, prefix, shorter) == 0 &&
           (own == other || shorter == 0 || longer[shorter] == '.');
}

/* The row whose last part is nearest to `name`: of the section first, then of any that has this
 * very name, then of those that lie in it or around it; *rows is how many have exactly this name.
 * NULL where nothing is near. */
static const config_key *config_nearest_key(const char *prefix, const char *name, size_t *rows) {
    const char *candidates[512];
    const config_key *keys[512];
    for (int round = 0; round < 2; round++) {
        size_t count = 0;
        *rows = 0;
        for (size_t i = 0; i < config_key_count() && count < 512; i++) {
            const config_key *key = config_key_at(i);
            if (!config_is_hint(key)) continue;
            if (round == 0 && !config_is_member(key->path, prefix)) continue;
            const char *leaf = config_key_leaf(key);
            if (round == 1 && strcmp(leaf, name) != 0 && !config_lies_with(key->path, leaf, prefix))
                continue;
            keys[count] = key;
            candidates[count] = leaf;
            *rows += strcmp(candidates[count++], name) == 0;
        }
        const char *best = base_nearest(name, candidates, count);
        for (size_t i = 0; best && i < count; i++) {
            if (candidates[i] == best) return keys[i];
        }
    }
    return NULL;
}

/* The key that a flag of this name sets, where its own name is another: "ema_decay" is that of
 * sifr.ema.decay. */
static const config_key *config_named_as_flag(const char *name) {
    char flag[64], wanted[64];
    snprintf(wanted, sizeof wanted, "%s", name);
    for (char *c = wanted; *c; c++)
        if (*c == '_') *c = '-';
    for (size_t i = 0; i < config_key_count(); i++) {
        const config_key *key = config_key_at(i);
        if (config_key_flag_name(key, flag) && strcmp(flag, wanted) == 0) return key;
    }
    return NULL;
}

/* A member of the section whose name goes on where `name` ends: loss_type for loss. */
static const config_key *config_longer_key(const char *prefix, const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; length && i < config_key_count(); i++) {
        const config_key *key = config_key_at(i);
        const char *leaf = config_key_leaf(key);
        if (!config_is_hint(key) || !config_is_member(key->path, prefix)) continue;
        if (strncmp(leaf, name, length) == 0 && leaf[length] == '_') return key;
    }
    return NULL;
}

/* A section whose name goes on where `name` ends, with those that it lies in: zero_optimization for
 * zero. Its length in the path of one of its keys; 0: none. */
static size_t config_longer_section(const char *prefix, const char *name, const char **path) {
    size_t at = strlen(prefix) + (prefix[0] != 0), length = strlen(name);
    for (size_t i = 0; length && i < config_key_count(); i++) {
        *path = config_key_at(i)->path;
        if (strncmp(*path, prefix, strlen(prefix)) != 0 || strlen(*path) <= at + length) continue;
        const char *level = *path + at, *dot = strchr(level, '.');
        if ((at == 0 || level[-1] == '.') && dot && strncmp(level, name, length) == 0 &&
            level[length] == '_')
            return (size_t)(dot - *path);
    }
    return 0;
}

static sifr_status config_unknown(const sifr_config *config, const char *prefix, const char *name,
                                  sifr_error *error) {
    char quoted[80], full[400];
    config_quote(name, quoted, sizeof quoted);
    if (config_may_be_login(prefix, name))
        return base_fail(
            error, SIFR_USAGE,
            "%s: unknown key%s%s%s, whose name is not shown, as it may be a login; "
            "docs/config.md lists every key that is known",
            config->name, prefix[0] ? " in \"" : "", prefix, prefix[0] ? "\"" : "");
    const char *shown = strlen(name) < 64 && !strpbrk(name, "\n\r\t\"\\") ? name : quoted;
    snprintf(full, sizeof full, "%s%s%s", prefix, prefix[0] ? "." : "", shown);
    for (const char *c = full; *c; c++) {
        if ((unsigned char)*c < 32)
            return base_fail(error, SIFR_USAGE, "%s: unknown key %s", config->name, quoted);
    }
    if (strchr(name, '.') && config_key_find(name, NULL)) {
        return base_fail(error, SIFR_USAGE,
                         "%s: unknown key %s with a dot in its name; write it as nested objects",
                         config->name, quoted);
    }
    size_t rows = 0;
    const config_key *flag = strlen(name) < 64 ? config_named_as_flag(name) : NULL;
    const char *section;
    size_t length = flag ? 0 : config_longer_section(prefix, name, &section);
    if (length)
        return base_fail(error, SIFR_USAGE, "%s: unknown key %s; did you mean %.*s?", config->name,
                         full, (int)length, section);
    if (!flag) flag = config_longer_key(prefix, name);
    if (flag && strcmp(config_key_leaf(flag), name) != 0)
        return base_fail(error, SIFR_USAGE, "%s: unknown key %s; did you mean %s?", config->name,
                         full, flag->path);
    const config_key *near = strlen(name) < 64 ? config_nearest_key(prefix, name, &rows) : NULL;
    if (!near) {
        return base_fail(error, SIFR_USAGE,
                         "%s: unknown key %s; docs/config.md lists every key that is known",
                         config->name, full);
    }
    const char *leaf = config_key_leaf(near);
    if (rows > 1) {
        return base_fail(error, SIFR_USAGE,
                         "%s: unknown key %s; \"%s\" belongs in one of %zu sections, such as %s",
                         config->name, full, leaf, rows, near->path);
    }
    if (strcmp(leaf, name) == 0 && leaf == near->path) {
        return base_fail(error, SIFR_USAGE, "%s: unknown key %s; \"%s\" belongs at the top level",
                         config->name, full, leaf);
    }
    if (strcmp(leaf, name) == 0) {
        return base_fail(error, SIFR_USAGE, "%s: unknown key %s; \"%s\" belongs in \"%.*s\"",
                         config->name, full, leaf, (int)(leaf - near->path - 1), near->path);
    }
    return base_fail(error, SIFR_USAGE, "%s: unknown key %s; did you mean %s?", config->name, full,
                     near->path);
}

/* Keeps the path of a key that begins with "_", for config_ignored. */
static sifr_status config_ignore(sifr_config *config, const char *prefix, const char *name,
                                 sifr_error *error) {
    char path[CONFIG_PATH], quoted[CONFIG_PATH];
    snprintf(path, sizeof path, "%s%s%.100s", prefix, prefix[0] ? "." : "", name);
    bool plain = strlen(name) <= 100;
    for (const char *c = name; *c; c++) plain &= (unsigned char)*c > 32 && (unsigned char)*c < 127;
    if (!config->ignored) config->ignored = json_array();
    json_t *shown = json_string(plain ? path : config_quote(name, quoted, 80));
    if (json_array_append_new(config->ignored, shown) != 0) return base_fail_alloc(error, 64);
    return SIFR_OK;
}

const char *config_ignored(const sifr_config *config, size_t index) {
    return json_string_value(json_array_get(config->ignored, index));
}

/* What counts as not given: null, and for some keys false. */
static bool config_is_absent(const config_key *key, const json_t *value) {
    char text[16];
    if (json_is_null(value)) return true;
    return key->status == CONFIG_BUILT && key->neutral && json_is_boolean(value) &&
           config_key_has_word(key->neutral, config_value_text(value, text, sizeof text), NULL,
                               NULL);
}

/* Flags count over the file, also those that were set before it was read. */
static void config_take(config_setting *setting, json_t *value) {
    if (setting->origin == CONFIG_FROM_FLAG) {
        json_decref(value);
        return;
    }
    setting->given = value;
    setting->origin = CONFIG_FROM_FILE;
}

static sifr_status config_walk(sifr_config *config, json_t *object, const char *prefix,
                               config_faults *faults, sifr_error *error) {
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value) {
        char path[CONFIG_PATH], where[CONFIG_PATH + 256];
        int length = snprintf(path, sizeof path, "%s%s%s", prefix, prefix[0] ? "." : "", name);
        size_t index;
        const config_key *key = NULL;
        if (name[0] == '_') {
            BASE_TRY(config_ignore(config, prefix, name, error));
            continue;
        }
        if (length < CONFIG_PATH && !strchr(name, '.')) key = config_key_find(path, &index);
        if (!key || key->status == CONFIG_ALIAS) {
            sifr_status status = config_unknown(config, prefix, name, error);
            BASE_TRY(config_faults_add(faults, status, error));
            continue;
        }
        if (config_is_absent(key, value)) continue;
        if (key->type == CONFIG_SECTION && json_is_object(value)) {
            if (key->ungated) {
                config->settings[index].given = json_incref(value);
                config->settings[index].origin = CONFIG_FROM_FILE;
            }
            BASE_TRY(config_walk(config, value, path, faults, error));
            continue;
        }
        snprintf(where, sizeof where, "%.200s: %s", config->name, path);
        json_t *checked;
        sifr_status status = config_value_check(key, value, where, &checked, error);
        BASE_TRY(config_faults_add(faults, status, error));
        if (status == SIFR_OK) config_take(&config->settings[index], checked);
    }
    return SIFR_OK;
}

/* Where a key or a value is wrong, values that are not supported are said with it; by themselves
 * they wait for the flags, which may replace them. */
static sifr_status config_read(sifr_config *config, json_t *root, sifr_error *error) {
    config_faults faults = {0};
    sifr_error fault;
    BASE_TRY(config_walk(config, root, "", &faults, error ? error : &fault));
    if (faults.count > 0) BASE_TRY(config_verify_into(config, &faults));
    return config_faults_end(&faults, error);
}

/* The object that holds the last part of `path`, made where it is missing and `make` is set; NULL
 * where it is not there, or something on the way is no object. */
static json_t *config_holder(json_t *root, const char *path, bool make) {
    json_t *object = root;
    const char *dot;
    for (; (dot = strchr(path, '.')) != NULL; path = dot + 1) {
        char part[64];
        snprintf(part, sizeof part, "%.*s", (int)(dot - path), path);
        json_t *next = json_object_get(object, part);
        if ((!next || json_is_null(next)) && make) {
            next = json_object();
            if (json_object_set_new(object, part, next) != 0) return NULL;
        }
        if (!json_is_object(next)) return NULL;
        object = next;
    }
    return object;
}

/* What `true` or `false` stands for where the key wants an object; NULL on any other value. */
static json_t *config_bool_as_object(const config_key *key, const json_t *value) {
    if (!key->bool_means || !json_is_boolean(value)) return NULL;
    return json_is_true(value) ? json_loads(key->bool_means, 0, NULL) : json_object();
}

/* Moves the value of an old name to its new one. */
static sifr_status config_rename(sifr_config *config, json_t *root, size_t index,
                                 sifr_error *error) {
    const config_key *key = config_key_at(index);
    json_t *holder = config_holder(root, key->path, false);
    json_t *value = holder ? json_object_get(holder, config_key_leaf(key)) : NULL;
    if (!value) return SIFR_OK;
    const char *leaf = strrchr(key->alias, '.');
    leaf = leaf ? leaf + 1 : key->alias;
    json_t *target = config_holder(root, key->alias, true);
    if (!target) {
        return base_fail(error, SIFR_USAGE, "%s: %s cannot be read: the section of %s is no object",
                         config->name, key->path, key->alias);
    }
    if (!json_is_null(value) && json_object_get(target, leaf)) {
        return base_fail(error, SIFR_USAGE,
                         "%s: %s is another name of %s, and both are given; leave %s out",
                         config->name, key->path, key->alias, key->path);
    }
    config->settings[index].given = json_incref(value);
    config->settings[index].origin = CONFIG_FROM_FILE;
    json_t *moved = key->bool_means ? config_bool_as_object(key, value) : json_incref(value);
    json_object_del(holder, config_key_leaf(key));
    if (json_is_null(config->settings[index].given) ||
        config_value_is_auto(config->settings[index].given)) {
        json_decref(moved);
        return SIFR_OK;
    }
    if (!moved) {
        char text[96];
        return base_fail(error, SIFR_USAGE, "%s: %s must be true or false, not %s", config->name,
                         key->path,
                         config_value_text(config->settings[index].given, text, sizeof text));
    }
    if (json_object_set_new(target, leaf, moved) != 0) return base_fail_alloc(error, 64);
    return SIFR_OK;
}

/* transformers' Adafactor has two numbers as its eps. */
static sifr_status config_split_eps(json_t *root, sifr_error *error) {
    json_t *params = config_holder(root, "optimizer.params.eps", false);
    json_t *pair = json_object_get(params, "eps");
    const char *type =
        json_string_value(json_object_get(json_object_get(root, "optimizer"), "type"));
    if (!type || strcasecmp(type, "Adafactor") != 0) return SIFR_OK;
    if (json_array_size(pair) != 2 || json_object_get(params, "least_scale")) return SIFR_OK;
    bool split = json_object_set(params, "least_scale", json_array_get(pair, 1)) == 0 &&
                 json_object_set(params, "eps", json_array_get(pair, 0)) == 0;
    return split ? SIFR_OK : base_fail_alloc(error, 64);
}

static sifr_status config_modernize(sifr_config *config, json_t *root, sifr_error *error) {
    for (size_t i = 0; i < config_key_count(); i++) {
        const config_key *key = config_key_at(i);
        if (key->type != CONFIG_SECTION || !key->bool_means) continue;
        json_t *holder = config_holder(root, key->path, false);
        json_t *object =
            holder ? config_bool_as_object(key, json_object_get(holder, config_key_leaf(key)))
                   : NULL;
        if (object && json_object_set_new(holder, config_key_leaf(key), object) != 0) {
            return base_fail_alloc(error, 64);
        }
    }
    for (size_t i = 0; i < config_key_count(); i++) {
        if (config_key_at(i)->status == CONFIG_ALIAS)
            BASE_TRY(config_rename(config, root, i, error));
    }
    BASE_TRY(config_split_eps(root, error));
    return SIFR_OK;
}

/* JSON first, whose messages people know. Its message also counts where neither reader takes a text
 * that begins as JSON does. */
sifr_status config_read_text(const char *text, size_t size, const char *name, json_t **out,
                             sifr_error *error) {
    char *clean = NULL;
    sifr_error other;
    sifr_status status = config_text_to_json(text, size, name, &clean, error);
    if (status == SIFR_OK) status = base_json_parse_strict(clean, size, name, out, error);
    free(clean);
    if (status != SIFR_USAGE) return status;
    sifr_status second = config_hjson(text, size, name, out, &other);
    if (second == SIFR_USAGE && !config_hjson_likely(text, size)) return status;
    if (second != SIFR_OK && error) *error = other;
    return second;
}

sifr_status config_parse(sifr_config *config, const char *text, size_t size, const char *name,
                         sifr_error *error) {
    json_t *root = NULL;
    if (config->name) {
        return base_fail(error, SIFR_USAGE, "%s: a run has one config, and %s is read already",
                         name, config->name);
    }
    BASE_TRY(base_copy_text(name, strlen(name), &config->name, error));
    sifr_status status = config_read_text(text, size, name, &root, error);
    if (status != SIFR_OK) return status;
    if (!json_is_object(root)) {
        status = base_fail(error, SIFR_USAGE, "%s: a config is an object {…}, not a list", name);
    }
    if (status == SIFR_OK) status = config_modernize(config, root, error);
    if (status == SIFR_OK) status = config_read(config, root, error);
    json_decref(root);
    return status;
}

sifr_status config_load(sifr_config *config, const char *path, sifr_error *error) {
    char *text;
    size_t size;
    bool encoded = access(path, F_OK) != 0 && config_from_base64(path, &text, &size);
    if (!encoded) BASE_TRY(base_read_file(path, CONFIG_LIMIT, &text, &size, error));
    const char *name = encoded ? "the config in base64" : path;
    sifr_status status = config_parse(config, text, size, name, error);
    free(text);
    return status;
}
