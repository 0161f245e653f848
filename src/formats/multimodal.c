#include "formats/multimodal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define LANGUAGE_MODEL "model.language_model."

const formats_multimodal formats_multimodals[FORMATS_MULTIMODALS] = {
    [FORMATS_GEMMA3] = {.model_type = "gemma3",
                        .body = LANGUAGE_MODEL,
                        .texts = {{"gemma3_text", "gemma3_text", "Gemma3ForCausalLM"}},
                        .tied = true,
                        .media = {{"image_token_index", 262144}, {"image_token_id", -1}}},
    [FORMATS_MISTRAL3] = {.model_type = "mistral3",
                          .body = LANGUAGE_MODEL,
                          .texts = {{"mistral", "mistral", "MistralForCausalLM"},
                                    {"ministral3", "ministral3", "Ministral3ForCausalLM"}},
                          .tied = true,
                          .media = {{"image_token_index", 10}, {"image_token_id", -1}}},
    [FORMATS_QWEN2_5_VL] =
        {.model_type = "qwen2_5_vl",
         .body = LANGUAGE_MODEL,
         .texts = {{"qwen2_5_vl_text", "qwen2", "Qwen2ForCausalLM"}},
         .defaults = "{\"vocab_size\": 152064, \"hidden_size\": 8192, \"intermediate_size\": "
                     "29568, \"num_hidden_layers\": 80, \"num_attention_heads\": 64, "
                     "\"num_key_value_heads\": 8, \"rms_norm_eps\": 1e-05, \"rope_theta\": "
                     "1000000.0, \"max_window_layers\": 80, \"bos_token_id\": 151643, "
                     "\"eos_token_id\": 151645}",
         .text_ties = true,
         .flat = true,
         .even_heads = true,
         .sections = true,
         .media = {{"image_token_id", 151655}, {"video_token_id", 151656}}},
    [FORMATS_QWEN3_VL] = {.model_type = "qwen3_vl",
                          .body = LANGUAGE_MODEL,
                          .texts = {{"qwen3_vl_text", "qwen3", "Qwen3ForCausalLM"}},
                          .defaults = "{\"max_position_embeddings\": 128000, \"rope_theta\": "
                                      "500000.0}",
                          /* Its text class has no windows. */
                          .fixed = "{\"use_sliding_window\": false}",
                          .sections = true,
                          .media = {{"image_token_id", 151655}, {"video_token_id", 151656}}},
    [FORMATS_QWEN3_5] = {.model_type = "qwen3_5",
                         .body = LANGUAGE_MODEL,
                         .texts = {{"qwen3_5_text", "qwen3_5_text", "Qwen3_5ForCausalLM"}},
                         .sections = true,
                         .media = {{"image_token_id", 248056}, {"video_token_id", 248057}}},
    [FORMATS_SMOLVLM] = {.model_type = "smolvlm",
                         .body = "model.text_model.",
                         .texts = {{"llama", "llama", "LlamaForCausalLM"}},
                         .media = {{"image_token_id", 128257}}},
    [FORMATS_INTERNVL] = {.model_type = "internvl",
                          .body = LANGUAGE_MODEL,
                          .texts = {{"qwen2", "qwen2", "Qwen2ForCausalLM"},
                                    {"qwen3", "qwen3", "Qwen3ForCausalLM"},
                                    {"llama", "llama", "LlamaForCausalLM"}},
                          .tied = true,
                          .media = {{"image_token_id", 151667}}},
    [FORMATS_GLM4V] = {.model_type = "glm4v",
                       .body = LANGUAGE_MODEL,
                       .texts = {{"glm4v_text", "glm4", "Glm4ForCausalLM"}},
                       .defaults = "{\"hidden_size\": 4096, \"num_attention_heads\": 32, "
                                   "\"max_position_embeddings\": 32768, \"rms_norm_eps\": 1e-05, "
                                   "\"partial_rotary_factor\": 1.0, \"pad_token_id\": null}",
                       /* Its products have these biases whatever the config says. */
                       .fixed = "{\"attention_bias\": true}",
                       .text_ties = true,
                       .even_heads = true,
                       .sections = true,
                       .media = {{"image_token_id", 151343}, {"video_token_id", 151344}}},
    [FORMATS_LFM2_VL] = {.model_type = "lfm2_vl",
                         .body = LANGUAGE_MODEL,
                         .texts = {{"lfm2", "lfm2", "Lfm2ForCausalLM"}},
                         .tied = true,
                         .tie = "tie_embedding",
                         .media = {{"image_token_id", 396}}},
    [FORMATS_GEMMA4] = {.model_type = "gemma4",
                        .body = LANGUAGE_MODEL,
                        .texts = {{"gemma4_text", "gemma4_text", "Gemma4ForCausalLM"}},
                        .tied = true,
                        .media = {{"image_token_id", 258880},
                                  {"video_token_id", 258884},
                                  {"audio_token_id", 258881}}},
    [FORMATS_GEMMA4_UNIFIED] = {.model_type = "gemma4_unified",
                                .body = LANGUAGE_MODEL,
                                .texts = {{"gemma4_unified_text", "gemma4_unified_text",
                                           "Gemma4UnifiedForCausalLM"}},
                                .tied = true,
                                .media = {{"image_token_id", 258880},
                                          {"video_token_id", 258884},
                                          {"audio_token_id", 258881}}},
};

const formats_multimodal *formats_multimodal_find(const char *model_type) {
    for (int i = 0; model_type && i < FORMATS_MULTIMODALS; i++)
        if (!strcmp(formats_multimodals[i].model_type, model_type)) return &formats_multimodals[i];
    return NULL;
}

/* --- the text model's config --- */

static sifr_status find_text(const formats_multimodal *kind, const json_t *config,
                             const char *where, const json_t **out, sifr_error *error) {
    const json_t *text = json_object_get(config, "text_config");
    bool absent = !text || json_is_null(text);
    *out = text;
    if (absent && kind->flat && json_object_get(config, "hidden_size"))
        return *out = config, SIFR_OK;
    if (absent)
        return base_fail(error, SIFR_USAGE,
                         "%s: \"text_config\" is missing: the text model of model_type \"%s\" "
                         "stands there, and without it nothing can be trained; take the whole "
                         "config.json of the model",
                         where, kind->model_type);
    if (json_is_object(text)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: \"text_config\" must be an object", where);
}

static sifr_status find_kind(const formats_multimodal *kind, const json_t *text, bool flat,
                             const char *where, int *out, sifr_error *error) {
    const char *type = kind->texts[0].type;
    char known[128] = "";
    size_t used = 0;
    if (!flat) BASE_TRY(base_json_string(text, "model_type", type, &type, where, error));
    for (int i = 0; i < FORMATS_TEXT_KINDS && kind->texts[i].type; i++) {
        if (!strcmp(kind->texts[i].type, type)) return *out = i, SIFR_OK;
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                 kind->texts[i].type);
    }
    return base_fail(error, SIFR_USAGE,
                     "%s: \"text_config\": \"model_type\" \"%.60s\" is not supported in model_type "
                     "\"%s\" yet (supported: %s)",
                     where, type, kind->model_type, known);
}

static sifr_status read_tie(const formats_multimodal *kind, const json_t *config,
                            const json_t *text, const char *where, bool *out, sifr_error *error) {
    bool own;
    BASE_TRY(base_json_bool(config, "tie_word_embeddings", kind->tied, out, where, error));
    if (kind->tie) BASE_TRY(base_json_bool(config, kind->tie, *out, out, where, error));
    BASE_TRY(base_json_bool(text, "tie_word_embeddings", false, &own, where, error));
    if (kind->text_ties) *out |= own;
    return SIFR_OK;
}

static bool put_text(json_t *object, const char *key, const char *value) {
    return json_object_set_new(object, key, json_string(value)) == 0;
}

/* Positions of text are the same three times over, so their sections change nothing. */
static bool plain_rope(json_t *text, const char *key) {
    json_t *rope = json_object_get(text, key);
    if (!json_is_object(rope)) return true;
    rope = json_copy(rope);
    if (!rope || json_object_set_new(text, key, rope) != 0) return false;
    json_object_del(rope, "mrope_section");
    json_object_del(rope, "mrope_interleaved");
    static const char *const types[] = {"type", "rope_type"};
    bool good = true;
    for (int i = 0; i < 2; i++) {
        const char *type = json_string_value(json_object_get(rope, types[i]));
        if (type && !strcmp(type, "mrope")) good &= put_text(rope, types[i], "default");
    }
    return good;
}

static bool update(json_t *text, const char *keys, bool missing) {
    json_t *others = keys ? json_loads(keys, 0, NULL) : NULL;
    if (!keys) return true;
    /* A base that the rope's object holds goes before the default beside it. */
    const json_t *rope = json_object_get(text, "rope_parameters");
    if (!json_is_object(rope)) rope = json_object_get(text, "rope_scaling");
    if (json_object_get(rope, "rope_theta")) json_object_del(others, "rope_theta");
    bool good = others && (missing ? json_object_update_missing(text, others)
                                   : json_object_update(text, others)) == 0;
    json_decref(others);
    return good;
}

/* Keys at the top that text_config may lack. Not the padding's id, which only its own has. */
static bool inherit(json_t *text, const json_t *config) {
    static const char *const keys[] = {
        "bos_token_id", "eos_token_id",         "dtype",
        "torch_dtype",  "transformers_version", "quantization_config"};
    bool typed = json_object_get(text, "dtype") || json_object_get(text, "torch_dtype");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *value = json_object_get(config, keys[i]);
        if (!value || json_object_get(text, keys[i]) || (typed && strstr(keys[i], "dtype")))
            continue;
        if (json_object_set(text, keys[i], value) != 0) return false;
    }
    return true;
}

static bool even_heads(json_t *text) {
    const json_t *size = json_object_get(text, "hidden_size");
    const json_t *heads = json_object_get(text, "num_attention_heads");
    json_object_del(text, "head_dim");
    if (!json_is_integer(size) || !json_is_integer(heads) || json_integer_value(heads) < 1)
        return true; /* whoever reads them refuses them */
    json_int_t each = json_integer_value(size) / json_integer_value(heads);
    return json_object_set_new(text, "head_dim", json_integer(each)) == 0;
}

static bool complete(const formats_multimodal *kind, const json_t *config, int at, bool tied,
                     json_t *text) {
    static const char *const others[] = {"vision_config", "audio_config", "text_config",
                                         "base_config_key"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) json_object_del(text, others[i]);
    if (kind->tie) json_object_del(text, kind->tie);
    for (int i = 0; i < FORMATS_MEDIA_LIMIT && kind->media[i].key; i++)
        json_object_del(text, kind->media[i].key);
    return inherit(text, config) && update(text, kind->defaults, true) &&
           update(text, kind->fixed, false) && (!kind->even_heads || even_heads(text)) &&
           put_text(text, "model_type", kind->texts[at].plain) &&
           json_object_set_new(text, "architectures",
                               json_pack("[s]", kind->texts[at].plain_class)) == 0 &&
           json_object_set_new(text, "tie_word_embeddings", json_boolean(tied)) == 0 &&
           (!kind->sections ||
            (plain_rope(text, "rope_parameters") && plain_rope(text, "rope_scaling")));
}

sifr_status formats_multimodal_text(const formats_multimodal *kind, const json_t *config,
                                    const char *where, json_t **out, sifr_error *error) {
    const json_t *text;
    int at;
    bool tied;
    *out = NULL;
    BASE_TRY(find_text(kind, config, where, &text, error));
    BASE_TRY(find_kind(kind, text, text == config, where, &at, error));
    BASE_TRY(read_tie(kind, config, text, where, &tied, error));
    *out = json_copy((json_t *)text);
    if (*out && complete(kind, config, at, tied, *out)) return SIFR_OK;
    json_decref(*out);
    *out = NULL;
    return base_fail_alloc(error, 4096);
}

sifr_status formats_multimodal_media(const formats_multimodal *kind, const json_t *config,
                                     const char *where, formats_media out[FORMATS_MEDIA_LIMIT],
                                     int *count, sifr_error *error) {
    bool some = false;
    *count = 0;
    for (int i = 0; i < FORMATS_MEDIA_LIMIT && kind->media[i].key; i++) {
        const char *key = kind->media[i].key;
        int64_t id;
        bool given = json_object_get(config, key) != NULL;
        /* The second key is another spelling of the first where it has no id of its own. */
        int64_t fallback = kind->media[i].id;
        BASE_TRY(base_json_int(config, key, given ? -1 : fallback, &id, where, error));
        if (id < -1 || id > INT32_MAX)
            return base_fail(error, SIFR_USAGE, "%s: \"%s\" is %lld, must be the id of a token",
                             where, key, (long long)id);
        if (kind->media[i].id < 0 && given && some) *count = 0;
        if (id < 0) continue;
        out[(*count)++] = (formats_media){key, (int)id};
        some = true;
    }
    return SIFR_OK;
}

/* --- names --- */

static const char head[] = "lm_head";

/* What is behind the class's body; NULL: it is another name. */
static const char *behind_body(const char *name) {
    for (int i = 0; i < FORMATS_MULTIMODALS; i++) {
        size_t length = strlen(formats_multimodals[i].body);
        if (!strncmp(name, formats_multimodals[i].body, length)) return name + length;
    }
    return NULL;
}

bool formats_multimodal_spelling(const char *name, int spelling,
                                 char out[FORMATS_SPELLING_LENGTH]) {
    static const char *const bodies[] = {"language_model.model.", "model."};
    const char *rest = behind_body(name);
    bool is_head = !strncmp(name, head, sizeof head - 1);
    if (spelling == 0) return snprintf(out, FORMATS_SPELLING_LENGTH, "%s", name) > 0;
    if (is_head && spelling == 1)
        return snprintf(out, FORMATS_SPELLING_LENGTH, "language_model.%s", name) > 0;
    if (!rest || spelling > 2) return false;
    return snprintf(out, FORMATS_SPELLING_LENGTH, "%s%s", bodies[spelling - 1], rest) > 0;
}

static const char *behind(const char *name, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(name, prefix, length) ? NULL : name + length;
}

const char *formats_multimodal_plain(const char *name, char out[FORMATS_SPELLING_LENGTH]) {
    static const char *const parts[] = {"layers.",
                                        "embed_tokens.",
                                        "norm.",
                                        "embedding_norm.",
                                        "embed_tokens_per_layer.",
                                        "per_layer_model_projection.",
                                        "per_layer_projection_norm."};
    const char *rest = behind_body(name);
    if (!rest) rest = behind(name, "language_model.model.");
    if (!rest) rest = behind(name, "model.");
    for (size_t i = 0; rest && i < sizeof parts / sizeof *parts; i++) {
        if (!behind(rest, parts[i])) continue;
        snprintf(out, FORMATS_SPELLING_LENGTH, "model.%s", rest);
        return out;
    }
    rest = behind(name, "language_model.");
    if (!rest) rest = name;
    if (!behind(rest, "lm_head.")) return NULL;
    snprintf(out, FORMATS_SPELLING_LENGTH, "%s", rest);
    return out;
}
