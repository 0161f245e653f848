/* What other programs say of model, tokenizer and special tokens, which are the model folder's
 * here. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "config/import/import_private.h"

enum { TOKENIZER_LIMIT = 16 << 20 };

/* Keys of the model's folder. */
static const char *const models[] = {"base_model", "model_name_or_path"};

/* The first member of an object that is none of `words` and asks for something; NULL: none. */
static const char *find_other(const json_t *object, const char *words) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        if (import_asks(value) && !config_key_has_word(words, key, NULL, NULL)) return key;
    }
    return NULL;
}

/* Members among `words` change nothing, for the reason `why`; others are refused by name. */
static sifr_status expect_members(import_state *s, const char *key, const json_t *value,
                                  const char *words, const char *why, const char *must) {
    char text[240];
    if (!import_asks(value)) return SIFR_OK;
    json_t *object = json_is_string(value) ? json_loads(json_string_value(value), 0, NULL)
                                           : json_incref((json_t *)(uintptr_t)value);
    const char *other = json_is_object(object) ? find_other(object, words) : "no object";
    snprintf(text, sizeof text, "%.60s: %s", other ? other : "", must);
    json_decref(object);
    if (other) return import_refuse(s, key, value, text);
    import_say_idle(s, key, value, why);
    return SIFR_OK;
}

sifr_status import_model_kwargs(import_state *s, const char *key, json_t *value) {
    return expect_members(s, key, value,
                          "torch_dtype|dtype|attn_implementation|device_map|trust_remote_code|"
                          "use_cache|low_cpu_mem_usage|revision|use_kernels|cache_dir",
                          "the model is read in its own type and trained in that of bf16 or fp16",
                          "the model's config.json has it: put it there");
}

/* TRL 1 reads skip_prepare_dataset alone; before, texts had special tokens or had not. */
sifr_status import_dataset_kwargs(import_state *s, const char *key, json_t *value) {
    return expect_members(s, key, value, "", "rows are prepared as TRL does",
                          "rows are prepared as TRL does");
}

sifr_status import_accelerator(import_state *s, const char *key, json_t *value) {
    return expect_members(s, key, value,
                          "dispatch_batches|even_batches|use_seedable_sampler|data_seed|"
                          "non_blocking|use_configured_state",
                          "data are read from a token store", "a micro batch is that of a rank");
}

/* The end-of-text token that a file of the folder names, as a text or an object; NULL: none. The
 * caller's, also where the file cannot be read, which then says nothing. */
static json_t *read_eos(const char *folder, const char *file) {
    char path[BASE_PATH_LENGTH];
    json_t *config, *token;
    if (!base_has_file(folder, file) || base_path_join(path, folder, file, NULL) != SIFR_OK ||
        base_json_load(path, TOKENIZER_LIMIT, &config, NULL) != SIFR_OK)
        return NULL;
    token = json_object_get(config, "eos_token");
    if (json_is_object(token)) token = json_object_get(token, "content");
    if (!json_is_string(token)) token = NULL;
    json_incref(token);
    json_decref(config);
    return token;
}

/* Whether the model's folder is here, and ends texts with this token by itself. */
static bool is_own_eos(const import_state *s, const json_t *token) {
    static const char *const files[] = {"tokenizer_config.json", "special_tokens_map.json"};
    const char *folder = NULL;
    json_t *own = NULL;
    for (size_t i = 0; i < 2 && !folder; i++)
        folder = json_string_value(json_object_get(s->source, models[i]));
    for (size_t i = 0; i < 2 && folder && !own; i++) own = read_eos(folder, files[i]);
    bool same = own && json_equal(own, token);
    json_decref(own);
    return same;
}

sifr_status import_special_tokens(import_state *s, const char *key, json_t *value) {
    bool own = is_own_eos(s, json_object_get(value, "eos_token"));
    return expect_members(s, key, value, own ? "pad_token|eos_token" : "pad_token",
                          own ? "eos_token is the model folder's own, and padding has no labels"
                              : "padding has no labels",
                          "special tokens are those of the model folder: put them there, and pass "
                          "them with --allow");
}

sifr_status import_eos_token(import_state *s, const char *key, json_t *value) {
    static const import_row row = NEED(
        "eos_token", "special tokens are those of the model folder", "<EOS_TOKEN>",
        "special tokens and the tokenizer are those of the model folder: put it there, and pass it "
        "with --allow");
    if (!is_own_eos(s, value)) return import_apply(s, &row, key, value);
    import_say_idle(s, key, value, "it is the model folder's own");
    return SIFR_OK;
}

sifr_status import_same_model(import_state *s, const char *key, json_t *value) {
    if (!import_asks(value)) return SIFR_OK;
    for (size_t i = 0; i < 2; i++) {
        const json_t *model = json_object_get(s->source, models[i]);
        if (!model || !json_equal(model, value)) continue;
        import_say_idle(s, key, value, "the tokenizer is that of the model folder");
        return SIFR_OK;
    }
    return import_refuse(s, key, value,
                         "the tokenizer is that of the model folder: put this one there, and pass "
                         "the key with --allow");
}

/* axolotl's plugins of kernels, reports and benchmarks. */
sifr_status import_plugins(import_state *s, const char *key, json_t *value) {
    static const char *const idle[] = {"liger", "cut_cross_entropy", "kernels", "swanlab",
                                       "lm_eval"};
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *name = json_string_value(json_array_get(value, i));
        bool known = false;
        for (size_t k = 0; name && k < sizeof idle / sizeof *idle; k++) {
            char part[64];
            snprintf(part, sizeof part, "integrations.%s.", idle[k]);
            known |= strstr(name, part) != NULL;
        }
        if (!known)
            return import_refuse(s, key, value, "not all of these plugins have a counterpart");
    }
    if (import_asks(value))
        import_say_idle(s, key, value, "their keys say what of them has a counterpart");
    return SIFR_OK;
}
