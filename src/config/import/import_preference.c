/* Preference training by TRL and the programs built on it: DPO and ORPO. */
#include <stdio.h>
#include <string.h>

#include "config/config_private.h"
#include "config/import/import_private.h"

/* `losses` are names of the source with those of sifr.preference.loss_type, "" for the cross
 * entropy; a name that is none of them is refused. */
typedef struct import_preference {
    const char *loss, *beta; /* the source's keys */
    const char *usual;       /* the loss where its key is absent; NULL: none is learned */
    const char *const (*losses)[2];
    size_t count;
    int64_t pairs; /* of a micro batch, where the source does not say */
} import_preference;
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

static sifr_status finish(import_state *s, const import_preference *p) {
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

/* --- the programs --- */

/* Keys of preferences alone, which TRL's classes of fine-tuning do not have. */
bool import_trl_prefers(const import_state *s) {
    static const char *const pairs[] = {"beta",
                                        "max_prompt_length",
                                        "f_divergence_type",
                                        "label_smoothing",
                                        "precompute_ref_log_probs",
                                        "ref_model",
                                        "reference_free",
                                        "rpo_alpha",
                                        "ld_alpha",
                                        "use_weighting",
                                        "sync_ref_model",
                                        "loss_weights",
                                        NULL};
    const json_t *type = json_object_get(s->source, "loss_type");
    const char *loss = json_string_value(type);
    for (const char *const *key = pairs; *key; key++)
        if (import_is_given(json_object_get(s->source, *key))) return true;
    if (json_array_size(type)) return true;
    return loss && !config_key_has_word("nll|chunked_nll|dft", loss, NULL, NULL);
}

/* DPO by TRL, LLaMA-Factory and open-instruct, and TRL's ORPO. LLaMA-Factory's ORPO leaves the
 * prompt out of the cross entropy, which TRL's and sifr's have. */
sifr_status import_trainer_objective(import_state *s) {
    static const char *const trl[][2] = {
        {"nll", ""},        {"chunked_nll", ""}, {"sigmoid", "sigmoid"},
        {"hinge", "hinge"}, {"ipo", "ipo"},      {"orpo", "orpo"}};
    static const import_preference factory = {"pref_loss", "pref_beta", "sigmoid", trl + 2, 3, 8};
    static const import_preference plain = {"loss_type", "beta", NULL, trl, 6, 8};
    static const char *const dpo[][2] = {{"dpo", "sigmoid"}};
    static const import_preference instruct = {"dpo_loss_type", "dpo_beta", "dpo", dpo, 1, 8};
    static const char *const idle[] = {"pref_loss", "pref_beta"};
    json_t *stage = json_object_get(s->source, "stage");
    json_t *reward = json_object_get(s->source, "center_rewards_coefficient");
    if (reward) /* only TRL's RewardConfig has it, if only as null */
        return import_refuse(s, "center_rewards_coefficient", reward,
                             "it is of reward models, which are not supported yet");
    const char *word = json_string_value(stage);
    if (word && strcmp(word, "dpo") == 0) {
        json_t *loss = json_object_get(s->source, factory.loss);
        const char *named = json_string_value(loss);
        import_say_kept(s, "stage", stage, "sifr.preference");
        if (named && strcmp(named, "orpo") == 0)
            return import_refuse(s, factory.loss, loss,
                                 "LLaMA-Factory's ORPO leaves the prompt out of the cross entropy, "
                                 "which TRL's and sifr's have; set sifr.preference.loss_type");
        return finish(s, &factory);
    }
    if (import_asks(stage) && !(word && config_key_has_word("pt|sft", word, NULL, NULL)))
        return import_refuse(
            s, "stage", stage,
            "this kind of training is not supported yet (supported: pt, sft, dpo)");
    BASE_TRY(import_factory_stage(s));
    for (size_t i = 0; i < 2; i++) {
        const json_t *value = json_object_get(s->source, idle[i]);
        if (import_asks(value)) import_say_idle(s, idle[i], value, "stage is not dpo");
    }
    if (import_asks(json_object_get(s->source, instruct.loss)) ||
        import_asks(json_object_get(s->source, instruct.beta)))
        return finish(s, &instruct);
    import_preference usual = plain;
    if (s->kind == &import_trl && import_trl_prefers(s)) usual.usual = "sigmoid";
    return finish(s, &usual);
}

sifr_status import_axolotl_objective(import_state *s) {
    static const char *const losses[][2] = {{"dpo", "sigmoid"}, {"ipo", "ipo"}, {"orpo", "orpo"}};
    import_preference p = {.loss = "rl", .losses = losses, .count = 3, .pairs = 1};
    p.beta = import_is_given(json_object_get(s->source, "rl_beta")) ? "rl_beta" : "orpo_alpha";
    return finish(s, &p);
}
