/* Adapters of axolotl, TRL and LLaMA-Factory, as sifr.lora with PEFT's keys. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "config/config_private.h"
#include "config/import/import_private.h"

static const struct {
    const char *from, *to;
} lora_keys[] = {{"lora_r", "r"},
                 {"lora_rank", "r"},
                 {"lora_alpha", "lora_alpha"},
                 {"lora_dropout", "lora_dropout"},
                 {"lora_target_modules", "target_modules"},
                 {"lora_target_linear", "target_modules"},
                 {"lora_target", "target_modules"},
                 {"lora_exclude_modules", "exclude_modules"},
                 {"lora_modules_to_save", "modules_to_save"},
                 {"additional_target", "modules_to_save"},
                 {"lora_layers_to_transform", "layers_to_transform"},
                 {"peft_layers_to_transform", "layers_to_transform"},
                 {"peft_layers_pattern", "layers_pattern"},
                 {"peft_init_lora_weights", "init_lora_weights"},
                 {"use_dora", "use_dora"},
                 {"peft_use_dora", "use_dora"},
                 {"use_rslora", "use_rslora"},
                 {"peft_use_rslora", "use_rslora"}};
enum { LORA_KEYS = sizeof lora_keys / sizeof *lora_keys };

/* "q_proj,v_proj" is a list; "all" is every product. */
static json_t *names_of(const char *text) {
    json_t *list = json_array();
    if (strcmp(text, "all") == 0 || strcmp(text, "all-linear") == 0) {
        json_decref(list);
        return json_string("all-linear");
    }
    while (list && *text) {
        text += strspn(text, ", ");
        size_t length = strcspn(text, ", ");
        if (length) json_array_append_new(list, json_stringn(text, length));
        text += length;
    }
    return list;
}

/* A new value for PEFT's key; NULL: nothing to set. */
static json_t *value_for(const char *from, const char *to, json_t *value) {
    bool names = strcmp(to, "target_modules") == 0 || strcmp(to, "modules_to_save") == 0 ||
                 strcmp(to, "exclude_modules") == 0;
    if (strcmp(from, "lora_target_linear") == 0)
        return json_is_true(value) ? json_string("all-linear") : NULL;
    if (names && json_is_string(value)) return names_of(json_string_value(value));
    if (strcmp(to, "init_lora_weights") == 0 && json_is_string(value))
        return json_string("gaussian"); /* in any case of letters */
    bool one = names && json_array_size(value) == 1;
    const char *first = one ? json_string_value(json_array_get(value, 0)) : NULL;
    if (first && strcmp(first, "all-linear") == 0) return json_string(first);
    return json_incref(value);
}

/* Of PEFT's ways to begin, those that sifr has; false is one of them. */
static bool begins(const json_t *value) {
    const char *word = json_string_value(value);
    return json_is_boolean(value) || (word && strcasecmp(word, "gaussian") == 0);
}

/* What the source takes where its key is absent. */
static sifr_status put_usual(import_state *s, const char *key, const char *to, json_t *value) {
    char from[80];
    if (import_get(s, to)) {
        json_decref(value);
        return SIFR_OK;
    }
    snprintf(from, sizeof from, "its default of %s", key);
    import_say_kept(s, from, value, to);
    return import_put(s, to, value);
}

/* axolotl gives PEFT's config null where it has no rank or alpha, which ends its run. */
sifr_status import_check_lora(import_state *s) {
    static const char *const keys[] = {"lora_r", "lora_alpha"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = json_object_get(s->source, keys[i]);
        if (import_is_given(value)) continue;
        BASE_TRY(import_refuse(s, keys[i], json_null(),
                               "an adapter of axolotl has no other; --allow takes PEFT's default, "
                               "8"));
    }
    return SIFR_OK;
}

sifr_status import_finish_lora(import_state *s, const import_lora *lora) {
    char to[64];
    if (lora->on) BASE_TRY(import_put(s, "sifr.lora", json_object()));
    for (size_t i = 0; i < LORA_KEYS; i++) {
        json_t *value = json_object_get(s->source, lora_keys[i].from);
        bool first = strcmp(lora_keys[i].to, "init_lora_weights") == 0;
        bool counts = json_is_number(value) || (first && json_is_false(value)); /* also as 0 */
        if (!import_asks(value) && !(lora->on && counts)) continue;
        if (!lora->on) {
            import_say_idle(s, lora_keys[i].from, value, lora->off);
            continue;
        }
        bool alpha = strcmp(lora_keys[i].to, "lora_alpha") == 0;
        if (alpha && lora->alpha_by_rank > 0 && json_is_number(value) && !import_asks(value)) {
            import_say_idle(s, lora_keys[i].from, value, "0 is none: alpha follows the rank");
            continue;
        }
        if (first && !begins(value))
            return import_refuse(s, lora_keys[i].from, value,
                                 "adapters begin by true, false or gaussian alone");
        json_t *own = value_for(lora_keys[i].from, lora_keys[i].to, value);
        if (!own) continue;
        snprintf(to, sizeof to, "sifr.lora.%s", lora_keys[i].to);
        import_say_kept(s, lora_keys[i].from, value, to);
        BASE_TRY(import_put(s, to, own));
    }
    if (!lora->on) return SIFR_OK;
    /* An empty object would ask for no adapter. */
    if (!import_get(s, "sifr.lora.r") && lora->r <= 0)
        BASE_TRY(import_put(s, "sifr.lora.r", json_integer(8)));
    double rank = json_number_value(import_get(s, "sifr.lora.r"));
    bool trl = s->kind == &import_trl; /* the others call it a rank */
    const char *ranks = trl ? "lora_r" : "lora_rank";
    if (lora->r > 0) rank = rank > 0 ? rank : lora->r;
    if (lora->r > 0) BASE_TRY(put_usual(s, ranks, "sifr.lora.r", json_integer((json_int_t)rank)));
    double alpha = lora->alpha_by_rank > 0 ? rank * lora->alpha_by_rank : lora->alpha;
    if (alpha > 0)
        BASE_TRY(
            put_usual(s, "lora_alpha", "sifr.lora.lora_alpha", json_integer((json_int_t)alpha)));
    if (lora->dropout > 0)
        BASE_TRY(put_usual(s, "lora_dropout", "sifr.lora.lora_dropout", json_real(lora->dropout)));
    if (lora->all)
        BASE_TRY(
            put_usual(s, "lora_target", "sifr.lora.target_modules", json_string("all-linear")));
    return SIFR_OK;
}

/* The first of these keys that the source has; NULL: none. */
static json_t *first_of(const import_state *s, const char *const *keys, const char **key) {
    for (; *keys; keys++) {
        json_t *value = json_object_get(s->source, *keys);
        if (!value || json_is_null(value)) continue;
        *key = *keys;
        return value;
    }
    return NULL;
}

/* axolotl's own keys of BitsAndBytesConfig; others than these two change no code. */
static sifr_status read_bnb(import_state *s, bool on, bool *doubled) {
    static const char *const from = "bnb_config_kwargs";
    json_t *object = json_object_get(s->source, from);
    const json_t *twice = json_object_get(object, "bnb_4bit_use_double_quant");
    const char *type = json_string_value(json_object_get(object, "bnb_4bit_quant_type"));
    if (!import_asks(object)) return SIFR_OK;
    if (!on) {
        import_say_idle(s, from, object, "load_in_4bit is not given");
        return SIFR_OK;
    }
    if (type && strcasecmp(type, "nf4") != 0)
        return import_refuse(s, from, object, "nf4 is the type that is supported");
    import_say_kept(s, from, object, "sifr.quantization");
    if (twice) *doubled = json_is_true(twice);
    return SIFR_OK;
}

sifr_status import_finish_codes(import_state *s, bool doubled) {
    static const char *const on[] = {"load_in_4bit", "use_qlora", "quantization_bit", NULL};
    static const char *const types[] = {"bnb_4bit_quant_type", "quantization_type", NULL};
    static const char *const twice[] = {"use_bnb_nested_quant", "double_quantization", NULL};
    static const char *const to = "sifr.quantization";
    const char *key = on[0];
    json_t *value = first_of(s, on, &key);
    bool asks = import_asks(value);
    BASE_TRY(read_bnb(s, asks, &doubled));
    if (!asks) return SIFR_OK;
    if (json_is_number(value) && json_number_value(value) != 4)
        return import_refuse(s, key, value, "4 bits (NF4) are what is supported");
    import_say_kept(s, key, value, to);
    doubled |= strcmp(key, "use_qlora") == 0;
    value = first_of(s, types, &key);
    const char *type = json_string_value(value);
    if (value && (!type || strcasecmp(type, "nf4") != 0))
        return import_refuse(s, key, value, "nf4 is the type that is supported");
    if (value) import_say_kept(s, key, value, "sifr.quantization.bnb_4bit_quant_type");
    value = first_of(s, twice, &key);
    if (value) {
        import_say_kept(s, key, value, "sifr.quantization.bnb_4bit_use_double_quant");
        doubled = json_is_true(value);
    }
    return import_put(s, to,
                      json_pack("{s:b, s:s, s:b}", "load_in_4bit", 1, "bnb_4bit_quant_type", "nf4",
                                "bnb_4bit_use_double_quant", doubled));
}
