/* The modules of an adapter of a text model beside a tower, as PEFT's keys name them. Plain names
 * (q_proj) would also meet the tower's modules, so they become a pattern of whole names:
 *
 *     model\.language_model\.layers\.(?:\d+\.(?:self_attn\.q_proj|self_attn\.v_proj))
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/lora.h"
#include "model/registry.h"

enum { PATTERN = 4000 }; /* model_pattern_check takes a little more */

/* A text that is being made; past its end it is cut, which `whole` says. */
typedef struct pattern_text {
    char at[PATTERN];
    size_t used;
    bool whole;
} pattern_text;

static void put(pattern_text *out, const char *text) {
    size_t length = strlen(text);
    if (!out->whole || out->used + length >= PATTERN) {
        out->whole = false;
        return;
    }
    memcpy(out->at + out->used, text, length + 1);
    out->used += length;
}

static void put_name(pattern_text *out, const char *name) {
    char one[3] = "";
    for (; *name; name++) {
        snprintf(one, sizeof one, "%s%c", *name == '.' ? "\\" : "", *name);
        put(out, one);
    }
}

static void module_name(const char *weight, char out[MODEL_NAME_LENGTH]) {
    const char *dot = strrchr(weight, '.');
    snprintf(out, MODEL_NAME_LENGTH, "%.*s", (int)(dot ? dot - weight : 0), weight);
}

/* The number of a layer, and what is behind it in a module's name; NULL: it is of no layer. */
static const char *split(const char *module, const char *body, char layer[16]) {
    size_t length = strlen(body);
    if (strncmp(module, body, length) || strncmp(module + length, "layers.", 7)) return NULL;
    const char *number = module + length + 7, *dot = strchr(number, '.');
    if (!dot || dot - number >= 16) return NULL;
    snprintf(layer, 16, "%.*s", (int)(dot - number), number);
    return dot + 1;
}

/* {"self_attn.q_proj": "0|2|5", …}: the layers in which a part is adapted. NULL: memory ran out, or
 * a module is in no layer. */
static json_t *layers_of_parts(const sifr_model *model, const char *body) {
    json_t *parts = json_object();
    bool good = parts != NULL;
    for (size_t i = 0; good && i < model->weight_count; i++) {
        char module[MODEL_NAME_LENGTH], layer[16];
        if (!model->weights[i].adapter) continue;
        module_name(model->weights[i].name, module);
        const char *part = split(module, body, layer);
        const char *before = part ? json_string_value(json_object_get(parts, part)) : NULL;
        json_t *list = before ? json_sprintf("%s|%s", before, layer)
                       : part ? json_string(layer)
                              : NULL;
        good = list && json_object_set_new(parts, part, list) == 0;
    }
    if (good) return parts;
    json_decref(parts);
    return NULL;
}

/* {"0|2|5": "self_attn\.q_proj|self_attn\.v_proj", …} */
static json_t *parts_of_layers(json_t *parts) {
    json_t *out = json_object(), *list;
    const char *part;
    json_object_foreach(parts, part, list) {
        pattern_text name = {.whole = true};
        const char *layers = json_string_value(list);
        const char *before = json_string_value(json_object_get(out, layers));
        put_name(&name, part);
        json_t *joined = before ? json_sprintf("%s|%s", before, name.at) : json_string(name.at);
        if (!joined || !out || json_object_set_new(out, layers, joined) != 0) {
            json_decref(out);
            return NULL;
        }
    }
    return out;
}

static bool is_every_layer(const char *layers, int64_t count) {
    int64_t bars = 0;
    for (; *layers; layers++) bars += *layers == '|';
    return bars + 1 == count;
}

static bool make_pattern(const sifr_model *model, const model_config *config, pattern_text *out) {
    const char *layers, *body = config->multimodal->body;
    json_t *parts = layers_of_parts(model, body), *groups = parts ? parts_of_layers(parts) : NULL;
    json_t *names;
    size_t count = 0;
    *out = (pattern_text){.whole = groups != NULL};
    put_name(out, body);
    put(out, "layers\\.(?:");
    json_object_foreach(groups, layers, names) {
        bool every = is_every_layer(layers, config->num_hidden_layers);
        if (count++) put(out, "|");
        put(out, every ? "\\d+" : "(?:");
        put(out, every ? "" : layers);
        put(out, every ? "\\.(?:" : ")\\.(?:");
        put(out, json_string_value(names));
        put(out, ")");
    }
    put(out, ")");
    json_decref(parts);
    json_decref(groups);
    return out->whole;
}

/* The whole names of the modules with an adapter, or of those that are trained as a whole. */
static json_t *list_modules(const sifr_model *model, bool adapted) {
    json_t *list = json_array();
    char module[MODEL_NAME_LENGTH], last[MODEL_NAME_LENGTH] = "";
    for (size_t i = 0; list && i < model->weight_count; i++) {
        const model_weight *w = &model->weights[i];
        if (adapted ? !w->adapter : w->frozen || w->factor || w->adapted_bias) continue;
        module_name(w->name, module);
        if (strcmp(module, last) != 0 && json_array_append_new(list, json_string(module)) != 0) {
            json_decref(list);
            return NULL;
        }
        memcpy(last, module, sizeof last);
    }
    return list;
}

/* The numbers of modules that differ from the common one, by whole names. */
static json_t *list_numbers(const model_lora *lora, const sifr_model *model, bool ranks) {
    json_t *out = json_object();
    char module[MODEL_NAME_LENGTH];
    for (size_t i = 0; out && i < model->weight_count; i++) {
        if (!model->weights[i].adapter) continue;
        module_name(model->weights[i].name, module);
        json_t *value = ranks ? json_integer(model_lora_rank(lora, module))
                              : json_real(model_lora_alpha(lora, module));
        if (!value || json_object_set_new(out, module, value) != 0) {
            json_decref(out);
            return NULL;
        }
    }
    return out;
}

static bool set(json_t *object, const char *key, json_t *value) {
    return value && json_object_set_new(object, key, value) == 0;
}

bool model_lora_name_text(const model_lora *lora, const sifr_model *model,
                          const model_config *config, json_t *out) {
    static const char *const said[] = {"exclude_modules", "layers_to_transform", "layers_pattern"};
    pattern_text pattern;
    bool fits = make_pattern(model, config, &pattern);
    bool good =
        set(out, "target_modules", fits ? json_string(pattern.at) : list_modules(model, true));
    /* The pattern says what these would; PEFT refuses layers beside a pattern. */
    for (size_t i = 0; good && i < sizeof said / sizeof *said; i++)
        good = set(out, said[i], json_null());
    if (good && json_array_size(json_object_get(lora->json, MODEL_LORA_SAVED)))
        good = set(out, MODEL_LORA_SAVED, list_modules(model, false));
    if (good && lora->ranks) good = set(out, "rank_pattern", list_numbers(lora, model, true));
    if (good && lora->alphas) good = set(out, "alpha_pattern", list_numbers(lora, model, false));
    return good;
}
