/* Preference training by TRL and the programs built on it: DPO and ORPO. */
#include <stdio.h>
#include <string.h>

#include "config/config_private.h"
#include "config/import/import_private.h"

/* A micro batch of the sources counts pairs; sifr's counts answers. */
static sifr_status double_sizes(import_state *s, int64_t pairs) {
    static const char *const keys[] = {"sifr.per_device_train_batch_size",
                                       "train_micro_batch_size_per_gpu", "train_batch_size"};
    bool given = false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *value = import_get(s, keys[i]);
        int64_t count = json_integer_value(value);
        given |= i < 2 && value && !config_value_is_auto(value);
        if (count < 1 || count > INT32_MAX) continue;
        import_say_kept(s, keys[i], value, "twice as many: sifr counts answers, not pairs");
        BASE_TRY(import_put(s, keys[i], json_integer(2 * count)));
    }
    if (given) return SIFR_OK;
    json_t *value = json_integer(2 * pairs);
    import_say_kept(s, "its default micro batch in answers", value, keys[0]);
    return import_put(s, keys[0], value);
}

static const char *find_loss(const import_preference *p, const char *word) {
    for (size_t i = 0; word && i < p->count; i++)
        if (strcmp(p->losses[i][0], word) == 0) return p->losses[i][1];
    return NULL;
}

static sifr_status refuse_loss(import_state *s, const import_preference *p, const json_t *value) {
    char why[200];
    size_t used = (size_t)snprintf(why, sizeof why, "this loss is not supported yet (supported: ");
    for (size_t i = 0; i < p->count; i++)
        used += (size_t)snprintf(why + used, sizeof why - used, "%s%.20s", i ? ", " : "",
                                 p->losses[i][0]);
    snprintf(why + used, sizeof why - used, ")");
    return import_refuse(s, p->loss, value, why);
}

/* TRL's default is sifr's. */
static sifr_status put_dropout(import_state *s, bool preferences) {
    static const char *const key = "disable_dropout", *const to = "sifr.preference.dropout";
    json_t *value = json_object_get(s->source, key);
    if (!json_is_boolean(value)) return SIFR_OK;
    if (!preferences) {
        import_say_idle(s, key, value, "dropout is switched off for preferences alone");
        return SIFR_OK;
    }
    bool on = json_is_false(value);
    import_say_kept(s, key, value,
                    on ? "sifr.preference.dropout, true" : "dropout is off here too");
    return on ? import_put(s, to, json_true()) : SIFR_OK;
}

static sifr_status put_beta(import_state *s, const char *key) {
    static const char *const to = "sifr.preference.beta";
    json_t *value = json_object_get(s->source, key);
    if (!import_is_given(value)) return SIFR_OK;
    import_say_kept(s, key, value, to);
    return import_put(s, to, json_incref(value));
}

sifr_status import_finish_preference(import_state *s, const import_preference *p) {
    static const char *const to = "sifr.preference.loss_type";
    json_t *value = json_object_get(s->source, p->loss), *first = value;
    bool given = import_asks(value);
    if (json_array_size(value) == 1) first = json_array_get(value, 0);
    const char *word = given ? json_string_value(first) : p->usual;
    const char *loss = find_loss(p, word);
    if (!given && !p->usual) return put_dropout(s, false);
    if (!loss) return refuse_loss(s, p, value);
    if (!*loss) {
        import_say_idle(s, p->loss, value, "the loss is the cross entropy");
        return put_dropout(s, false);
    }
    if (given) {
        import_say_kept(s, p->loss, value, to);
    } else {
        char key[64];
        json_t *usual = json_string(word);
        snprintf(key, sizeof key, "its default of %.40s", p->loss);
        import_say_kept(s, key, usual, to);
        json_decref(usual);
    }
    BASE_TRY(import_put(s, to, json_string(loss)));
    BASE_TRY(put_beta(s, p->beta));
    BASE_TRY(put_dropout(s, true));
    return double_sizes(s, p->pairs);
}
