/* Optimizers by the Trainer's names, which axolotl and the programs built on the Trainer share. */
#include <stdlib.h>
#include <string.h>

#include "config/config_private.h"
#include "config/import/import_private.h"

#define PARAMS "optimizer.params."

/* Which of the Trainer's arguments an optimizer takes. */
enum { TAKES_BETAS = 1, TAKES_EPS = 2, TAKES_WARMUP = 4, TAKES_ARGS = 8, TAKES_NONE = 0 };

typedef struct import_optimizer {
    const char *names; /* the Trainer's */
    const char *type;
    unsigned takes;
    const char *note; /* what differs; NULL: nothing */
} import_optimizer;

static const import_optimizer optimizers[] = {
    {"adamw_torch|adamw_torch_fused|adamw_hf|adamw_apex_fused|adamw|adamw_torch_xla|"
     "adamw_torch_npu_fused|paged_adamw_32bit",
     "AdamW", TAKES_BETAS | TAKES_EPS, NULL},
    {"adamw_8bit|adamw_bnb_8bit|paged_adamw_8bit", "AdamW8bit", TAKES_BETAS | TAKES_EPS,
     "optimizer.type AdamW8bit, also of embeddings, which the Trainer leaves in 32 bits"},
    {"sgd", "SGD", TAKES_ARGS, NULL},
    {"adagrad", "Adagrad", TAKES_ARGS, NULL},
    {"lion_32bit|paged_lion_32bit", "Lion", TAKES_BETAS, NULL},
    {"adafactor", "Adafactor", TAKES_NONE,
     "optimizer.type Adafactor, with scale_parameter and relative_step false, as the Trainer has "
     "it"},
    {"schedule_free_adamw", "AdamWScheduleFree",
     TAKES_BETAS | TAKES_EPS | TAKES_WARMUP | TAKES_ARGS, NULL},
};

static const import_optimizer *find(const char *name) {
    for (size_t i = 0; name && i < sizeof optimizers / sizeof *optimizers; i++)
        if (config_key_has_word(optimizers[i].names, name, NULL, NULL)) return &optimizers[i];
    return NULL;
}

static bool is_adamw(const import_optimizer *o) {
    return strcmp(o->type, "AdamW") == 0;
}

/* The row of the optimizer that acts; NULL where it is the DeepSpeed config's, or was refused. */
static sifr_status choose(import_state *s, const char *key, const import_optimizer **out) {
    json_t *value = json_object_get(s->source, key);
    bool asks = import_asks(value);
    *out = NULL;
    if (import_get(s, "optimizer.type")) {
        if (asks) import_say_idle(s, key, value, "the DeepSpeed config has an optimizer");
        return SIFR_OK;
    }
    const import_optimizer *found = asks ? find(json_string_value(value)) : &optimizers[0];
    if (!found)
        return import_refuse(s, key, value,
                             "this optimizer is not supported yet (supported: adamw_torch, "
                             "adamw_8bit, adafactor, sgd, adagrad, lion_32bit, "
                             "schedule_free_adamw)");
    *out = found;
    if (asks && is_adamw(found)) import_say_idle(s, key, value, "the optimizer is AdamW");
    if (is_adamw(found)) return SIFR_OK;
    import_say_kept(s, key, value, found->note ? found->note : "optimizer.type");
    if (strcmp(found->type, "Adafactor") == 0) {
        BASE_TRY(import_put(s, PARAMS "scale_parameter", json_false()));
        BASE_TRY(import_put(s, PARAMS "relative_step", json_false()));
    }
    return import_put(s, "optimizer.type", json_string(found->type));
}

/* A parameter that the optimizer does not take does nothing there either. */
static sifr_status put_betas(import_state *s, const import_optimizer *o) {
    static const char *const betas[] = {"adam_beta1", "adam_beta2"}, *const to = PARAMS "betas";
    double values[] = {0.9, 0.999};
    bool given = o && strcmp(o->type, "Lion") == 0; /* whose own betas are others */
    for (size_t i = 0; i < 2; i++) {
        json_t *value = json_object_get(s->source, betas[i]);
        if (!import_is_given(value)) continue;
        if (o && !(o->takes & TAKES_BETAS)) {
            import_say_idle(s, betas[i], value, "this optimizer has no betas");
            continue;
        }
        const char *text = json_string_value(value);
        values[i] = text ? strtod(text, NULL) : json_number_value(value);
        given = true;
        import_say_kept(s, betas[i], value, to);
    }
    const json_t *there = import_get(s, to);
    if (!given || (there && !config_value_is_auto(there))) return SIFR_OK;
    return import_put(s, to, json_pack("[f, f]", values[0], values[1]));
}

static sifr_status put_eps(import_state *s, const import_optimizer *o) {
    static const import_row row = FILL("adam_epsilon", PARAMS "eps");
    json_t *value = json_object_get(s->source, row.from);
    if (!import_is_given(value)) return SIFR_OK;
    if (!o || o->takes & TAKES_EPS) return import_apply(s, &row, row.from, value);
    import_say_idle(s, row.from, value, "the Trainer gives it to Adam alone");
    return SIFR_OK;
}

/* schedulefree counts its own warm-up, beside that of a schedule. */
static sifr_status put_warmup(import_state *s, const import_optimizer *o) {
    static const char *const key = "warmup_steps", *const to = PARAMS "warmup_steps";
    json_t *value = json_object_get(s->source, key);
    double steps = json_number_value(value);
    if (!o || !(o->takes & TAKES_WARMUP) || !import_asks(value)) return SIFR_OK;
    if (steps < 1 || steps > 1e9) {
        import_say_left(s, key, value, "give optimizer.params.warmup_steps as a number of steps");
        return SIFR_OK;
    }
    import_say_kept(s, key, value, to);
    return import_put(s, to, json_integer((json_int_t)steps));
}

/* "True" and numbers, as Python writes them; NULL: something else. */
static json_t *python_value(const char *text, size_t length) {
    char value[64], *end;
    if (length == 0 || length >= sizeof value) return NULL;
    memcpy(value, text, length);
    value[length] = '\0';
    if (strcmp(value, "True") == 0) return json_true();
    if (strcmp(value, "False") == 0) return json_false();
    if (!strpbrk(value, ".eE")) return json_loads(value, JSON_DECODE_ANY, NULL);
    double number = strtod(value, &end);
    return *end ? NULL : json_real(number);
}

/* One "name=value" of optim_args, or a member where they are an object. */
static sifr_status put_argument(import_state *s, const import_optimizer *o, const char *name,
                                size_t length, json_t *value) {
    char path[96];
    const config_key *row = NULL;
    if (length < 40) {
        snprintf(path, sizeof path, PARAMS "%.*s", (int)length, name);
        row = config_key_find(path, NULL);
    }
    bool takes = row && row->status == CONFIG_BUILT && row->only &&
                 config_key_has_word(row->only, o->type, NULL, NULL);
    if (takes && (json_is_number(value) || json_is_boolean(value))) {
        import_say_kept(s, "optim_args", value, path);
        return import_put(s, path, value);
    }
    json_decref(value);
    return import_refuse(s, "optim_args", json_object_get(s->source, "optim_args"),
                         "not all of these are parameters of this optimizer here; see "
                         "docs/optimizers.md");
}

static size_t trimmed(const char *text, size_t length) {
    while (length && text[length - 1] == ' ') length--;
    return length;
}

static sifr_status put_arguments(import_state *s, const import_optimizer *o) {
    static const char *const key = "optim_args";
    json_t *value = json_object_get(s->source, key), *member;
    const char *text = json_string_value(value), *name;
    if (!import_asks(value) || !o) return SIFR_OK;
    if (!(o->takes & TAKES_ARGS)) {
        import_say_idle(s, key, value, "the Trainer gives this optimizer none of them");
        return SIFR_OK;
    }
    if (!text && !json_is_object(value)) import_say_left(s, key, value, "name=value is expected");
    json_object_foreach(value, name, member)
        BASE_TRY(put_argument(s, o, name, strlen(name), json_incref(member)));
    while (text && *text) {
        text += strspn(text, ", ");
        size_t size = strcspn(text, ","), length = strcspn(text, "=,");
        const char *from = text + length + (length < size);
        from += strspn(from, " ");
        if (size)
            BASE_TRY(put_argument(s, o, text, trimmed(text, length),
                                  python_value(from, trimmed(from, (size_t)(text + size - from)))));
        text += size;
    }
    return SIFR_OK;
}

/* An optimizer of DeepSpeed decays every weight, under the Trainer too. */
static sifr_status put_decay(import_state *s, const import_optimizer *o) {
    const json_t *decay = import_get(s, PARAMS "weight_decay");
    const char *text = json_string_value(decay);
    double number = text ? strtod(text, NULL) : json_number_value(decay);
    if (o && number > 0) {
        import_say_kept(s, "weight_decay", decay,
                        "sifr.no_decay, since the Trainer leaves out norms and biases");
        return import_put(s, "sifr.no_decay", json_string("transformers"));
    }
    /* bitsandbytes' default is another than the Trainer's. */
    bool coded = o && strcmp(o->type, "AdamW8bit") == 0;
    return coded && !decay ? import_put(s, PARAMS "weight_decay", json_real(0)) : SIFR_OK;
}

sifr_status import_finish_optimizer(import_state *s, const char *key) {
    const import_optimizer *o;
    BASE_TRY(choose(s, key, &o));
    BASE_TRY(put_betas(s, o));
    BASE_TRY(put_eps(s, o));
    BASE_TRY(put_warmup(s, o));
    BASE_TRY(put_arguments(s, o));
    BASE_TRY(put_decay(s, o));
    const json_t *rate = import_get(s, PARAMS "lr");
    if (import_get(s, "sifr.learning_rate") || (rate && !config_value_is_auto(rate)))
        return SIFR_OK;
    if (!import_get(s, "optimizer")) return SIFR_OK;
    return import_put(s, "sifr.learning_rate", json_real(5e-5));
}
