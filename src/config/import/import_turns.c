/* Whose turns axolotl's sets of messages learn, and which ends of turns, once all keys are read.
 * The first set's keys become those of the config, which held-out rows take too; a set that has
 * others gets keys of its own. */
#include <stdio.h>
#include <string.h>

#include "config/config_private.h"
#include "config/import/import_private.h"

static const char *const keys[] = {"roles_to_train", "train_on_eos", "train_on_eot"};

enum { ROLES, EOS, EOT, KEYS };

/* A set of the source. */
typedef struct turn_set {
    const char *list; /* "datasets" */
    size_t index;
    const json_t *set;
} turn_set;

bool import_is_turn_key(const char *name) {
    for (int i = 0; i < KEYS; i++)
        if (strcmp(name, keys[i]) == 0) return true;
    return false;
}

/* What axolotl makes of a role where its set names none. */
static const char *usual_role(const char *name) {
    if (strcmp(name, "human") == 0) return "user";
    if (strcmp(name, "gpt") == 0) return "assistant";
    return config_key_has_word("user|assistant|system|tool", name, NULL, NULL) ? name : NULL;
}

const char *import_usual_roles(const json_t *roles) {
    const char *role;
    json_t *names;
    int other = 0;
    if (!json_is_object(roles)) return NULL;
    json_object_foreach((json_t *)(uintptr_t)roles, role, names) {
        if (!json_is_array(names) && !json_is_null(names)) return NULL;
        for (size_t i = 0; i < json_array_size(names); i++) {
            const char *name = json_string_value(json_array_get(names, i));
            const char *usual = name ? usual_role(name) : NULL;
            if (!usual || strcmp(usual, role) != 0) return NULL;
            other += strcmp(name, role) != 0;
        }
    }
    return other >= 2 ? "axolotl takes these names of roles anyway"
                      : "axolotl takes these names of roles anyway; here human is always user, and "
                        "gpt assistant";
}

static const char *name_key(const turn_set *t, int key, char out[120]) {
    snprintf(out, 120, "%s[%zu].%s", t->list, t->index, keys[key]);
    return out;
}

static bool is_right(int key, const json_t *value) {
    const char *words = key == ROLES ? config_roles : "turn|all|last|none";
    bool right = json_is_array(value) == (key == ROLES);
    if (key != ROLES)
        return right && json_is_string(value) &&
               config_key_has_word(words, json_string_value(value), NULL, NULL);
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *role = json_string_value(json_array_get(value, i));
        right &= role && config_key_has_word(words, role, NULL, NULL);
    }
    return right;
}

static const char *why_wrong(int key, const json_t *value) {
    if (key != ROLES) return "turn, all, last or none is expected";
    return json_is_array(value) ? "messages here have no such role"
                                : "axolotl takes a list of roles, such as [assistant]";
}

/* What the set says, or what axolotl takes: a new object; *out NULL where that is refused. */
static sifr_status read_set(import_state *s, const turn_set *t, bool whole, json_t **out) {
    json_t *made = json_object();
    char where[120];
    *out = NULL;
    for (int i = 0; i < KEYS; i++) {
        json_t *value = json_object_get(t->set, keys[i]);
        if (!value || json_is_null(value)) continue;
        if (!is_right(i, value)) {
            json_decref(made);
            return import_refuse(s, name_key(t, i, where), value, why_wrong(i, value));
        }
        if (i != ROLES || !whole) json_object_set(made, keys[i], value);
    }
    if (!whole && !json_object_get(made, keys[ROLES]))
        json_object_set_new(made, keys[ROLES], json_pack("[s]", "assistant"));
    if (!json_object_get(made, keys[EOS]))
        json_object_set_new(made, keys[EOS], json_string("turn"));
    *out = made;
    return SIFR_OK;
}

/* Which of the set's values went where. */
static void say_set(import_state *s, const turn_set *t, const json_t *made, const char *to) {
    for (int i = 0; i < KEYS; i++) {
        const json_t *value = json_object_get(t->set, keys[i]);
        const json_t *kept = json_object_get(made, keys[i]);
        bool given = value && !json_is_null(value);
        char from[120], where[160];
        snprintf(where, sizeof where, "%s.%s", to, keys[i]);
        if (given && !kept)
            import_say_idle(s, name_key(t, i, from), value, "train_on_inputs learns every role");
        else if (given)
            import_say_kept(s, name_key(t, i, from), value, where);
        if (given || !kept || strcmp(to, "sifr") != 0) continue;
        snprintf(from, sizeof from, "its default of %s", keys[i]);
        import_say_kept(s, from, kept, where);
    }
}

static sifr_status put_first(import_state *s, const json_t *made) {
    for (int i = 0; i < KEYS; i++) {
        char path[40];
        json_t *value = json_object_get(made, keys[i]);
        snprintf(path, sizeof path, "sifr.%s", keys[i]);
        if (value) BASE_TRY(import_put(s, path, json_deep_copy(value)));
    }
    return SIFR_OK;
}

static json_t *form_of(const import_state *s, size_t index) {
    return json_array_get(import_get(s, "sifr.dataset"), index);
}

bool import_has_turns(const import_state *s, size_t index) {
    const char *type = json_string_value(json_object_get(form_of(s, index), "type"));
    return type && config_key_has_word("messages|sharegpt", type, NULL, NULL);
}

/* Keys of a set beside those of the config: all of them, since a source takes those that it leaves
 * out from there. */
static sifr_status put_other(import_state *s, const turn_set *t, const json_t *first,
                             json_t *made) {
    char to[40];
    if (!json_object_get(made, keys[EOT]) && json_object_get(first, keys[EOT]))
        json_object_set(made, keys[EOT], json_object_get(made, keys[EOS]));
    snprintf(to, sizeof to, "sifr.dataset[%zu]", t->index);
    json_t *source = form_of(s, t->index);
    if (json_object_update(source, made) != 0) return base_fail_alloc(s->error, 64);
    say_set(s, t, made, to);
    return SIFR_OK;
}

/* Takes the set's keys; *first are those of the config, NULL before the first set. */
static sifr_status take_set(import_state *s, const turn_set *t, bool whole, bool held_out,
                            json_t **first) {
    json_t *made;
    sifr_status status = read_set(s, t, whole, &made);
    if (status != SIFR_OK || !made) return status;
    char where[100];
    snprintf(where, sizeof where, "%s[%zu]", t->list, t->index);
    if (!*first) {
        *first = json_incref(made);
        say_set(s, t, made, "sifr");
        status = put_first(s, made);
    } else if (json_equal(*first, made)) {
        say_set(s, t, made, held_out ? "sifr.eval_data" : "sifr");
    } else if (held_out) {
        status = import_refuse(s, where, t->set,
                               "held-out rows are learned as those of the first set: give it the "
                               "same roles_to_train, train_on_eos and train_on_eot");
    } else {
        status = put_other(s, t, *first, made);
    }
    json_decref(made);
    return status;
}

static sifr_status take_tokens(import_state *s, bool turns) {
    static const char *const from = "eot_tokens", *const to = "sifr.eot_tokens";
    json_t *value = json_object_get(s->source, from);
    if (!import_asks(value)) return SIFR_OK;
    if (!turns) {
        import_say_idle(s, from, value, "no set has messages");
        return SIFR_OK;
    }
    import_say_kept(s, from, value, to);
    return import_put(s, to, json_incref(value));
}

/* The sets of rows of messages; those of preferences have no such keys. */
sifr_status import_axolotl_turns(import_state *s) {
    const json_t *sets = json_object_get(s->source, "datasets");
    const json_t *tests = json_object_get(s->source, "test_datasets");
    bool whole = json_is_true(json_object_get(s->source, "train_on_inputs"));
    json_t *first = NULL;
    sifr_status status = SIFR_OK;
    if (import_asks(json_object_get(s->source, "rl"))) return take_tokens(s, false);
    for (size_t i = 0; status == SIFR_OK && i < json_array_size(sets); i++) {
        turn_set t = {"datasets", i, json_array_get(sets, i)};
        if (import_has_turns(s, i)) status = take_set(s, &t, whole, false, &first);
    }
    turn_set t = {"test_datasets", 0, json_array_get(tests, 0)};
    const char *type = json_string_value(json_object_get(t.set, "type"));
    bool messages = type && config_key_has_word("chat_template|sharegpt", type, NULL, NULL);
    if (status == SIFR_OK && messages && import_get(s, "sifr.eval_data"))
        status = take_set(s, &t, whole, true, &first);
    if (status == SIFR_OK) status = take_tokens(s, first != NULL);
    json_decref(first);
    return status;
}
