/* The keys of PEFT's LoraConfig (0.21), read and written. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "model/lora.h"
#include "model/model_config.h"

enum { CONFIG_LIMIT = 1 << 20, RANK_LIMIT = 1 << 16 };

/* What is built, and what changes nothing here. */
static const char *const built[] = {"r",
                                    "lora_alpha",
                                    "lora_dropout",
                                    "target_modules",
                                    "exclude_modules",
                                    "rank_pattern",
                                    "alpha_pattern",
                                    "layers_to_transform",
                                    "layers_pattern",
                                    "modules_to_save",
                                    "bias",
                                    "fan_in_fan_out",
                                    "use_rslora",
                                    "use_dora",
                                    "init_lora_weights",
                                    "peft_type",
                                    "task_type",
                                    "inference_mode",
                                    "base_model_name_or_path",
                                    "revision",
                                    "auto_mapping",
                                    "peft_version",
                                    "megatron_core",
                                    "qalora_group_size",
                                    "runtime_config"};
/* LoraConfig's others: built when they are off, which is their default. */
static const char *const others[] = {"lora_bias",
                                     "loftq_config",
                                     "eva_config",
                                     "corda_config",
                                     "lora_ga_config",
                                     "velora_config",
                                     "alora_invocation_tokens",
                                     "use_qalora",
                                     "monteclora_config",
                                     "layer_replication",
                                     "target_parameters",
                                     "use_bdlora",
                                     "arrow_config",
                                     "kasa_config",
                                     "ensure_weight_tying",
                                     "megatron_config",
                                     "trainable_token_indices"};
enum { BUILT = sizeof built / sizeof *built, OTHERS = sizeof others / sizeof *others };

static bool is_one_of(const char *name, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static bool is_off(const json_t *value) {
    return json_is_null(value) || json_is_false(value) ||
           (json_is_object(value) && json_object_size(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0);
}

static sifr_status check_keys(json_t *json, const char *where, sifr_error *error) {
    const char *key, *names[BUILT + OTHERS];
    json_t *value;
    memcpy(names, built, sizeof built);
    memcpy(names + BUILT, others, sizeof others);
    json_object_foreach(json, key, value) {
        if (is_one_of(key, built, BUILT) || is_off(value)) continue;
        if (is_one_of(key, others, OTHERS))
            return base_fail(error, SIFR_USAGE, "%s: %s is not built here; leave it out", where,
                             key);
        const char *near = base_nearest(key, names, BUILT + OTHERS);
        return base_fail(error, SIFR_USAGE, "%s: %.60s is no key of PEFT's LoraConfig%s%s", where,
                         key, near ? "; did you mean " : "", near ? near : "");
    }
    const char *type;
    BASE_TRY(base_json_string(json, "peft_type", "LORA", &type, where, error));
    if (strcmp(type, "LORA") != 0)
        return base_fail(error, SIFR_USAGE,
                         "%s: peft_type %.40s is not built here; LORA is the one that is", where,
                         type);
    return SIFR_OK;
}

static const json_t *member(const json_t *json, const char *key) {
    const json_t *value = json_object_get(json, key);
    return is_off(value) ? NULL : value;
}

/* A list of names; or a string, a regular expression, where `pattern` is set. */
static sifr_status read_names(const model_lora *l, const char *key, bool pattern,
                              const json_t **out, sifr_error *error) {
    *out = member(l->json, key);
    if (!*out) return SIFR_OK;
    if (pattern && json_is_string(*out)) {
        const char *text = json_string_value(*out);
        return strcasecmp(text, "all-linear") == 0
                   ? SIFR_OK
                   : model_pattern_check(text, l->where, key, error);
    }
    bool names = json_is_array(*out);
    for (size_t i = 0; names && i < json_array_size(*out); i++)
        names = json_string_length(json_array_get(*out, i)) > 0;
    if (names) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: %s must be a list of names%s", l->where, key,
                     pattern ? ", or a regular expression" : "");
}

static sifr_status read_pattern(const model_lora *l, const char *key, double least,
                                const json_t **out, sifr_error *error) {
    const char *pattern;
    json_t *value;
    *out = member(l->json, key);
    if (!*out) return SIFR_OK;
    if (!json_is_object(*out))
        return base_fail(error, SIFR_USAGE, "%s: %s must be {\"name or pattern\": number}",
                         l->where, key);
    json_object_foreach((json_t *)(uintptr_t)*out, pattern, value) {
        double number = json_number_value(value);
        BASE_TRY(model_pattern_check(pattern, l->where, key, error));
        bool whole = least == 0 || json_is_integer(value);
        if (json_is_number(value) && whole && number >= least && number <= RANK_LIMIT) continue;
        return base_fail(error, SIFR_USAGE, "%s: %s of %.60s must be %s from %g to %d", l->where,
                         key, pattern, least > 0 ? "a whole number" : "a number", least,
                         RANK_LIMIT);
    }
    return SIFR_OK;
}

static sifr_status read_layers(model_lora *l, sifr_error *error) {
    const json_t *layers = json_object_get(l->json, "layers_to_transform");
    const json_t *patterns = member(l->json, "layers_pattern");
    l->layers = is_off(layers) ? NULL : layers;
    bool fits = !l->layers || json_is_integer(l->layers) || json_is_array(l->layers);
    for (size_t i = 0; fits && i < json_array_size(l->layers); i++)
        fits = json_is_integer(json_array_get(l->layers, i));
    if (!fits)
        return base_fail(error, SIFR_USAGE,
                         "%s: layers_to_transform must be a number of a layer or a list of them",
                         l->where);
    if (l->layers && json_is_string(l->targets))
        return base_fail(error, SIFR_USAGE,
                         "%s: layers_to_transform is for a list of target_modules, not for a "
                         "pattern",
                         l->where);
    l->layers_patterns =
        json_string_length(patterns) == 0 && json_is_string(patterns) ? NULL : patterns;
    if (!l->layers_patterns) return SIFR_OK;
    if (!l->layers)
        return base_fail(error, SIFR_USAGE,
                         "%s: layers_pattern is given without layers_to_transform", l->where);
    if (json_is_string(l->layers_patterns)) return SIFR_OK;
    return read_names(l, "layers_pattern", false, &l->layers_patterns, error);
}

static sifr_status read_choices(model_lora *l, sifr_error *error) {
    static const char *const biases[] = {"none", "all", "lora_only"};
    const json_t *init = json_object_get(l->json, "init_lora_weights");
    const char *text = json_string_value(init);
    const char *bias;
    l->init = MODEL_LORA_KAIMING;
    if (json_is_false(init))
        l->init = MODEL_LORA_RANDOM;
    else if (text && strcmp(text, "gaussian") == 0)
        l->init = MODEL_LORA_GAUSSIAN;
    else if (init && !json_is_true(init) && !json_is_null(init))
        return base_fail(error, SIFR_USAGE,
                         "%s: init_lora_weights %.40s is not built here; true, false and "
                         "\"gaussian\" are",
                         l->where, text ? text : "of this type");
    BASE_TRY(base_json_string(l->json, "bias", "none", &bias, l->where, error));
    for (int i = 0; i < 3; i++) {
        l->bias = (model_lora_bias)i;
        if (strcmp(bias, biases[i]) == 0) return SIFR_OK;
    }
    return base_fail(error, SIFR_USAGE, "%s: bias \"%.40s\" must be none, all or lora_only",
                     l->where, bias);
}

/* Lists that leave out all that they name. */
static sifr_status check_excluded(const model_lora *l, sifr_error *error) {
    size_t left = json_array_size(l->targets);
    if (left == 0 || !json_is_array(l->excluded)) return SIFR_OK;
    for (size_t i = 0; i < json_array_size(l->targets); i++)
        for (size_t k = 0; k < json_array_size(l->excluded); k++)
            if (json_equal(json_array_get(l->targets, i), json_array_get(l->excluded, k))) {
                left--;
                break;
            }
    if (left) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: exclude_modules has all names of target_modules, so there is no adapter; "
                     "leave some out of it",
                     l->where);
}

static sifr_status read_all(model_lora *l, sifr_error *error) {
    const json_t *saved;
    bool unused;
    BASE_TRY(base_json_int(l->json, "r", 8, &l->r, l->where, error));
    BASE_TRY(base_json_double(l->json, "lora_alpha", 8, &l->alpha, l->where, error));
    BASE_TRY(base_json_double(l->json, "lora_dropout", 0, &l->dropout, l->where, error));
    BASE_TRY(base_json_bool(l->json, "use_rslora", false, &l->rslora, l->where, error));
    BASE_TRY(base_json_bool(l->json, "use_dora", false, &l->dora, l->where, error));
    BASE_TRY(base_json_bool(l->json, "fan_in_fan_out", false, &unused, l->where, error));
    if (l->r < 1 || l->r > RANK_LIMIT)
        return base_fail(error, SIFR_USAGE, "%s: r %lld must be from 1 to %d", l->where,
                         (long long)l->r, RANK_LIMIT);
    if (!(l->alpha >= 0 && l->alpha <= RANK_LIMIT))
        return base_fail(error, SIFR_USAGE, "%s: lora_alpha %g must be from 0 to %d", l->where,
                         l->alpha, RANK_LIMIT);
    if (!(l->dropout >= 0 && l->dropout < 1))
        return base_fail(error, SIFR_USAGE, "%s: lora_dropout %g must be in [0, 1)", l->where,
                         l->dropout);
    BASE_TRY(read_names(l, "target_modules", true, &l->targets, error));
    BASE_TRY(read_names(l, "exclude_modules", true, &l->excluded, error));
    BASE_TRY(check_excluded(l, error));
    BASE_TRY(read_names(l, MODEL_LORA_SAVED, false, &saved, error));
    BASE_TRY(read_pattern(l, "rank_pattern", 1, &l->ranks, error));
    BASE_TRY(read_pattern(l, "alpha_pattern", 0, &l->alphas, error));
    BASE_TRY(read_layers(l, error));
    BASE_TRY(read_choices(l, error));
    if (!l->dora || l->bias == MODEL_LORA_NO_BIAS) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: use_dora with a bias that is trained is not built here; leave bias out",
                     l->where);
}

sifr_status model_lora_read(json_t *json, const char *where, model_lora *out, sifr_error *error) {
    *out = (model_lora){0};
    snprintf(out->where, sizeof out->where, "%s", where);
    if (!json_is_object(json))
        return base_fail(error, SIFR_USAGE,
                         "%s must be an object with the keys of PEFT's LoraConfig", where);
    out->json = json_incref(json);
    sifr_status status = check_keys(json, out->where, error);
    if (status == SIFR_OK) status = read_all(out, error);
    if (status != SIFR_OK) model_lora_free(out);
    return status;
}

sifr_status model_lora_load(const char *directory, model_lora *out, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    json_t *json;
    *out = (model_lora){0};
    BASE_TRY(base_path_join(path, directory, "adapter_config.json", error));
    if (!base_is_file(path))
        return base_fail(error, SIFR_FAILED,
                         "%s: not there, so %s is no adapter folder; name one that PEFT or a run "
                         "with sifr.lora wrote",
                         path, directory);
    BASE_TRY(base_json_load(path, CONFIG_LIMIT, &json, error));
    sifr_status status = model_lora_read(json, path, out, error);
    out->stored = status == SIFR_OK;
    json_decref(json);
    return status;
}

void model_lora_free(model_lora *lora) {
    json_decref(lora->json);
    *lora = (model_lora){0};
}

/* --- written --- */

static const char *task_type(model_task task) {
    static const char *const types[] = {[MODEL_NEXT_TOKEN] = "CAUSAL_LM",
                                        [MODEL_MASKED_TOKEN] = NULL,
                                        [MODEL_SEQUENCE_CLASSES] = "SEQ_CLS",
                                        [MODEL_TOKEN_CLASSES] = "TOKEN_CLS"};
    return types[task];
}

bool model_lora_task(const model_lora *lora, model_task *out) {
    const char *given = json_string_value(json_object_get(lora->json, "task_type"));
    for (int i = MODEL_SEQUENCE_CLASSES; given && i <= MODEL_TOKEN_CLASSES; i++) {
        *out = (model_task)i;
        if (strcmp(given, task_type(*out)) == 0) return true;
    }
    return false;
}

static bool put(json_t *object, const char *key, json_t *value) {
    return value && json_object_set_new(object, key, value) == 0;
}

json_t *model_lora_describe(const model_lora *l, const sifr_model *model,
                            const model_config *config, const char *base) {
    json_t *out = json_deep_copy(l->json);
    const json_t *targets;
    bool transposed = false;
    for (size_t i = 0; i < model->node_count; i++) {
        const model_node *node = &model->nodes[i];
        bool adapted = node->w[0] >= 0 && model->weights[node->w[0]].adapter > 0;
        transposed |= adapted && node->attributes.linear.transposed;
    }
    const char *type = task_type(config->task);
    bool whole = out && model_lora_complete(l, config->model_type, &targets, NULL) == SIFR_OK &&
                 put(out, "peft_type", json_string("LORA")) &&
                 put(out, "task_type", type ? json_string(type) : json_null()) &&
                 put(out, "base_model_name_or_path", json_string(base)) &&
                 put(out, "inference_mode", json_true()) && put(out, "r", json_integer(l->r)) &&
                 put(out, "fan_in_fan_out", json_boolean(transposed)) &&
                 put(out, "target_modules", json_deep_copy(targets));
    if (whole && !json_object_get(out, "lora_alpha"))
        whole = put(out, "lora_alpha", json_integer(8));
    if (whole && !json_object_get(out, "lora_dropout"))
        whole = put(out, "lora_dropout", json_real(0));
    if (whole && !json_object_get(out, MODEL_LORA_SAVED))
        whole = put(out, MODEL_LORA_SAVED, json_null());
    if (whole && !json_object_get(out, "bias")) whole = put(out, "bias", json_string("none"));
    if (whole && config->multimodal) whole = model_lora_name_text(l, model, config, out);
    if (whole) return out;
    json_decref(out);
    return NULL;
}
