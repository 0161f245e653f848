/* Whose turns are learned: roles_to_train, train_on_eos and train_on_eot, of all rows of messages
 * and of single sources. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "config/config_private.h"

/* What messages have, with axolotl's names for two of them. */
const char config_roles[] = "assistant|user|system|tool|gpt|human|developer|function|ipython|"
                            "context|documents|document|tool_call";

/* The keys of a source, or of the config. */
typedef struct turn_keys {
    const sifr_config *config;
    const json_t *source; /* NULL: the config's */
    const char *where;    /* the source's name */
} turn_keys;

static const char *name_key(const turn_keys *k, const char *key, char out[400]) {
    char path[64], where[300];
    snprintf(path, sizeof path, "sifr.%s", key);
    snprintf(out, 400, "%s%s%s", k->source ? k->where : config_path_where(k->config, path, where),
             k->source ? "." : "", k->source ? key : "");
    return out;
}

/* NULL: not given. */
static const json_t *value_of(const turn_keys *k, const char *key) {
    char path[64];
    snprintf(path, sizeof path, "sifr.%s", key);
    const json_t *value =
        k->source ? json_object_get(k->source, key) : config_setting_at(k->config, path)->value;
    return json_is_null(value) ? NULL : value;
}

static sifr_status read_roles(const turn_keys *k, config_turns *out, sifr_error *error) {
    static const char key[] = "roles_to_train";
    const json_t *list = value_of(k, key);
    char where[400];
    if (!list) return SIFR_OK;
    if (!json_is_array(list))
        return base_fail(error, SIFR_USAGE, "%s must be a list of roles, such as [\"assistant\"]",
                         name_key(k, key, where));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *role = json_string_value(json_array_get(list, i));
        if (role && config_key_has_word(config_roles, role, NULL, NULL)) continue;
        return base_fail(error, SIFR_USAGE, "%s: \"%.60s\" is no role of a message (roles: %s)",
                         name_key(k, key, where), role ? role : "", config_roles);
    }
    out->roles = list;
    out->given = true;
    return SIFR_OK;
}

static sifr_status read_ends(const turn_keys *k, const char *key, config_turns *turns,
                             const char **out, sifr_error *error) {
    const char *choices = config_key_find("sifr.train_on_eos", NULL)->choices;
    const json_t *value = value_of(k, key);
    char where[400];
    int choice;
    if (!value) return SIFR_OK;
    if (!json_is_string(value) ||
        !config_key_has_word(choices, json_string_value(value), &choice, NULL))
        return base_fail(error, SIFR_USAGE, "%s must be one of %s", name_key(k, key, where),
                         choices);
    *out = choice ? json_string_value(value) : NULL;
    turns->given = true;
    return SIFR_OK;
}

/* Only with some values of train_on. */
static sifr_status check_parts(const turn_keys *k, const config_turns *turns, sifr_error *error) {
    const char *part = k->config->train_on;
    bool all = part && strcmp(part, "all") == 0;
    const char *key = turns->roles ? "roles_to_train" : "train_on_eos";
    char where[400];
    if (!turns->given) return SIFR_OK;
    if (all && turns->roles)
        return base_fail(error, SIFR_USAGE,
                         "%s: with train_on all every role is learned; leave one of them out",
                         name_key(k, key, where));
    if (all || !part) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: it says what of messages is learned, and so does train_on %s; leave one "
                     "of them out",
                     name_key(k, key, where), part);
}

static bool is_same(const char *a, const char *b) {
    return a == b || (a && b && strcasecmp(a, b) == 0);
}

/* What is given, over what stands in *out. */
static sifr_status read_turns(const turn_keys *k, config_turns *out, sifr_error *error) {
    bool same = is_same(out->eos, out->eot);
    BASE_TRY(read_roles(k, out, error));
    BASE_TRY(read_ends(k, "train_on_eos", out, &out->eos, error));
    if (same) out->eot = out->eos;
    BASE_TRY(read_ends(k, "train_on_eot", out, &out->eot, error));
    return check_parts(k, out, error);
}

sifr_status config_fill_turns(sifr_config *config, sifr_error *error) {
    const json_t *tokens = config_setting_at(config, "sifr.eot_tokens")->value;
    turn_keys keys = {.config = config};
    config->turns = (config_turns){0};
    config->eot_tokens = json_array_size(tokens) ? tokens : NULL;
    return read_turns(&keys, &config->turns, error);
}

/* Once the sources are known. */
sifr_status config_check_turns(const sifr_config *config, sifr_error *error) {
    bool given = config->turns.given;
    char where[300];
    for (size_t i = 0; config->dataset && i < config->data_count; i++)
        given |= config->dataset[i].turns.given;
    if (given || !config->eot_tokens) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: it acts beside roles_to_train, train_on_eos or train_on_eot, and none is "
                     "given; leave it out, or give train_on_eos turn",
                     config_path_where(config, "sifr.eot_tokens", where));
}

sifr_status config_fill_source_turns(const sifr_config *config, const json_t *source,
                                     const char *where, config_turns *out, sifr_error *error) {
    turn_keys keys = {config, source, where};
    *out = config->turns;
    return read_turns(&keys, out, error);
}
