/* Which modules are adapted, and the adapters in a description. */
#include "model/lora.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "model/builder.h"
#include "model/registry.h"

/* PEFT's TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING, of the types in the registry. */
static const struct {
    const char *model_type, *modules[4];
} defaults[] = {{"gpt2", {"c_attn"}},
                {"llama", {"q_proj", "v_proj"}},
                {"mistral", {"q_proj", "v_proj"}},
                {"qwen2", {"q_proj", "v_proj"}},
                {"qwen3", {"q_proj", "v_proj"}},
                {"gemma", {"q_proj", "v_proj"}},
                {"gemma2", {"q_proj", "v_proj"}},
                {"gemma3_text", {"q_proj", "v_proj"}},
                {"gemma4", {"q_proj", "v_proj"}},
                {"gpt_neox", {"query_key_value"}},
                {"phi", {"q_proj", "v_proj", "fc1", "fc2"}},
                {"stablelm", {"q_proj", "v_proj"}},
                {"opt", {"q_proj", "v_proj"}},
                {"falcon", {"query_key_value"}},
                {"bloom", {"query_key_value"}},
                {"bert", {"query", "value"}},
                {"roberta", {"query", "value"}},
                {"xlm-roberta", {"query", "value"}},
                {"deberta-v2", {"query_proj", "value_proj"}}};

sifr_status model_lora_complete(const model_lora *lora, const char *model_type, const json_t **out,
                                sifr_error *error) {
    *out = lora->targets;
    if (lora->targets) return SIFR_OK;
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        if (strcmp(defaults[i].model_type, model_type) != 0) continue;
        json_t *list = json_array();
        for (int m = 0; list && m < 4 && defaults[i].modules[m]; m++)
            json_array_append_new(list, json_string(defaults[i].modules[m]));
        if (!list || json_object_set_new(lora->json, "target_modules", list) != 0)
            return base_fail_alloc(error, 256);
        *out = json_object_get(lora->json, "target_modules");
        return SIFR_OK;
    }
    return base_fail(error, SIFR_USAGE,
                     "%s: target_modules is not given, and PEFT has none for model_type %s; give "
                     "names of modules, or \"all-linear\"",
                     lora->where, model_type);
}

/* --- which --- */

/* Whether the name is `end`, or ends in a dot and `end`. */
static bool ends_in(const char *name, const char *end) {
    size_t a = strlen(name), b = strlen(end);
    if (a < b || strcmp(name + a - b, end) != 0) return false;
    return a == b || name[a - b - 1] == '.';
}

static bool is_spelt(const json_t *names, const char *module) {
    if (json_is_string(names))
        return model_pattern_matches(json_string_value(names), false, module);
    for (size_t i = 0; i < json_array_size(names); i++)
        if (ends_in(module, json_string_value(json_array_get(names, i)))) return true;
    return false;
}

/* A module of a text model beside a tower may be meant by any of its names. */
static bool is_any(const json_t *names, const char *module) {
    char spelt[FORMATS_SPELLING_LENGTH];
    for (int i = 0; formats_multimodal_spelling(module, i, spelt); i++)
        if (is_spelt(names, spelt)) return true;
    return false;
}

/* The number between dots behind `pattern` ("": any name) in a module's name, the last such one
 * with something before it and behind it; -1: none. */
static int64_t layer_behind(const char *module, const char *pattern) {
    size_t length = strlen(pattern);
    int64_t layer = -1;
    for (const char *at = strchr(module, '.'); at; at = strchr(at + 1, '.')) {
        const char *name = at + 1, *dot = strchr(name, '.');
        if (!dot) break;
        bool named = !length || ((size_t)(dot - name) == length && !strncmp(name, pattern, length));
        char *end;
        if (!named || dot[1] < '0' || dot[1] > '9') continue;
        long long number = strtoll(dot + 1, &end, 10);
        if (*end == '.') layer = number;
    }
    return layer;
}

static bool is_chosen_layer(const model_lora *lora, const char *module) {
    const json_t *patterns = lora->layers_patterns;
    int64_t layer = -1;
    if (!lora->layers) return true;
    if (!patterns || json_is_string(patterns))
        layer = layer_behind(module, patterns ? json_string_value(patterns) : "");
    for (size_t i = 0; layer < 0 && i < json_array_size(patterns); i++)
        layer = layer_behind(module, json_string_value(json_array_get(patterns, i)));
    if (json_is_integer(lora->layers)) return layer == json_integer_value(lora->layers);
    for (size_t i = 0; i < json_array_size(lora->layers); i++)
        if (layer >= 0 && layer == json_integer_value(json_array_get(lora->layers, i))) return true;
    return false;
}

static bool is_all_linear(const json_t *targets) {
    return json_is_string(targets) && strcasecmp(json_string_value(targets), "all-linear") == 0;
}

/* Whether a weight or module is in a module whose name ends in `end`; as in PEFT, within a part of
 * the name, too: "norm" also names "input_layernorm". */
static bool is_in(const char *name, const char *end) {
    size_t length = strlen(end);
    const char *at = strstr(name, end);
    while (at && at[length] && at[length] != '.') at = strstr(at + 1, end);
    return at != NULL;
}

/* By any of its names, too. */
static bool is_in_spelt(const char *name, const char *end) {
    char spelt[FORMATS_SPELLING_LENGTH];
    for (int i = 0; formats_multimodal_spelling(name, i, spelt); i++)
        if (is_in(spelt, end)) return true;
    return false;
}

static bool is_saved(const model_lora *lora, const char *name) {
    const json_t *saved = json_object_get(lora->json, MODEL_LORA_SAVED);
    for (size_t i = 0; i < json_array_size(saved); i++)
        if (is_in_spelt(name, json_string_value(json_array_get(saved, i)))) return true;
    return false;
}

bool model_lora_targets(const model_lora *lora, const json_t *targets, const char *module) {
    if (is_saved(lora, module)) return false;
    if (lora->excluded && is_any(lora->excluded, module)) return false;
    if (!is_all_linear(targets) && !is_any(targets, module)) return false;
    return is_chosen_layer(lora, module);
}

/* The value of the first pattern that fits. */
static double by_pattern(const json_t *patterns, const char *module, double otherwise) {
    const char *pattern;
    json_t *value;
    char spelt[FORMATS_SPELLING_LENGTH];
    json_object_foreach((json_t *)(uintptr_t)patterns, pattern, value) {
        for (int i = 0; formats_multimodal_spelling(module, i, spelt); i++)
            if (model_pattern_matches(pattern, true, spelt)) return json_number_value(value);
    }
    return otherwise;
}

int64_t model_lora_rank(const model_lora *lora, const char *module) {
    return (int64_t)by_pattern(lora->ranks, module, (double)lora->r);
}

double model_lora_alpha(const model_lora *lora, const char *module) {
    return by_pattern(lora->alphas, module, lora->alpha);
}

double model_lora_scale(const model_lora *lora, const char *module) {
    double rank = (double)model_lora_rank(lora, module);
    return model_lora_alpha(lora, module) / (lora->rslora ? sqrt(rank) : rank);
}

/* Heads for labels, each model has one of them. PEFT saves them, too. */
static const char *const heads[] = {"classifier", "score"};

static bool is_head(const char *name) {
    return strcmp(name, heads[0]) == 0 || strcmp(name, heads[1]) == 0;
}

sifr_status model_lora_save(const model_lora *lora, const char *module, sifr_error *error) {
    json_t *saved = json_object_get(lora->json, MODEL_LORA_SAVED);
    if (!json_is_array(saved) &&
        json_object_set_new(lora->json, MODEL_LORA_SAVED, json_array()) != 0)
        return base_fail_alloc(error, 64);
    saved = json_object_get(lora->json, MODEL_LORA_SAVED);
    for (size_t i = 0; i < json_array_size(saved); i++)
        if (strcmp(json_string_value(json_array_get(saved, i)), module) == 0) return SIFR_OK;
    return json_array_append_new(saved, json_string(module)) ? base_fail_alloc(error, 64) : SIFR_OK;
}

sifr_status model_lora_save_heads(const model_lora *lora, sifr_error *error) {
    BASE_TRY(model_lora_save(lora, heads[0], error));
    return model_lora_save(lora, heads[1], error);
}

/* --- in a description --- */

/* The module's name: a weight's without ".weight". False if it has another ending. */
static bool module_of(const char *weight, char out[MODEL_NAME_LENGTH]) {
    size_t length = strlen(weight), end = strlen(".weight");
    if (length <= end || length >= MODEL_NAME_LENGTH || strcmp(weight + length - end, ".weight"))
        return false;
    snprintf(out, MODEL_NAME_LENGTH, "%.*s", (int)(length - end), weight);
    return true;
}

static sifr_weight add_factor(sifr_model *model, const char *module, const char *name, int64_t rows,
                              int64_t columns, bool random) {
    const model_lora *lora = model->lora;
    char text[2 * MODEL_NAME_LENGTH];
    snprintf(text, sizeof text, "%s.%s.weight", module, name);
    bool gaussian = random && lora->init == MODEL_LORA_GAUSSIAN;
    random |= lora->init == MODEL_LORA_RANDOM;
    /* Kaiming's uniform values with a = sqrt(5), as torch.nn.Linear has them. */
    double bound = gaussian ? 1.0 / (double)rows : 1.0 / sqrt((double)columns);
    sifr_init init = gaussian ? SIFR_INIT_NORMAL : random ? SIFR_INIT_UNIFORM : SIFR_INIT_ZERO;
    sifr_weight weight = sifr_weight_matrix(model, text, rows, columns, init, bound);
    if (weight.id) model->weights[model_weight_index(weight)].factor = true;
    return weight;
}

/* The weight of a product that gets an adapter; NULL: it gets none. */
static const model_weight *adapted(const sifr_model *model, sifr_weight weight,
                                   char module[MODEL_NAME_LENGTH]) {
    if (!model->lora || !model_ok(model) || !weight.id) return NULL;
    const model_weight *w = &model->weights[model_weight_index(weight)];
    if (w->size || w->factor || !module_of(w->name, module)) return NULL;
    return model_lora_targets(model->lora, model->lora_targets, module) ? w : NULL;
}

/* With dropout the product of what is left stands beside the whole one, which has the bias. */
bool model_adapt_adds_bias(const sifr_model *model, sifr_weight weight) {
    char module[MODEL_NAME_LENGTH];
    const model_lora *lora = model->lora;
    return lora && lora->dora && lora->dropout == 0 && adapted(model, weight, module);
}

static bool add_adapter(sifr_model *model, int32_t index, const char *module, bool transposed) {
    const model_weight w = model->weights[index];
    int64_t from = transposed ? w.rows : w.columns, to = transposed ? w.columns : w.rows;
    int64_t rank = model_lora_rank(model->lora, module);
    base_assert(rank >= 1);
    char text[2 * MODEL_NAME_LENGTH];
    sifr_weight a = add_factor(model, module, "lora_A", rank, from, true);
    sifr_weight b = add_factor(model, module, "lora_B", to, rank, false);
    if (!a.id || !b.id) return false;
    model->weights[index].adapter = model_weight_index(a);
    if (!model->lora->dora) return true;
    snprintf(text, sizeof text, "%s.lora_magnitude_vector", module);
    sifr_weight m = sifr_weight_vector(model, text, to, SIFR_INIT_ONE);
    if (!m.id) return false;
    model->weights[model_weight_index(m)].factor = true;
    model->weights[model_weight_index(m)].norms_of = index + 1;
    return true;
}

/* The product of what dropout leaves gets magnitudes, and takes the place of what is in y. */
static sifr_value adapt_magnitudes(sifr_model *model, sifr_value x, sifr_value y, sifr_value added,
                                   const model_magnitude_args *args) {
    if (model->lora->dropout == 0) return model_magnitude(model, sifr_add(model, y, added), args);
    sifr_value own = model_product(model, x, args->weight, args->transposed);
    sifr_value less = sifr_scale(model, (sifr_scale_args){.x = own, .factor = -1});
    sifr_value z = model_magnitude(model, sifr_add(model, own, added), args);
    return sifr_add(model, sifr_add(model, y, less), z);
}

sifr_value model_adapt(sifr_model *model, sifr_value x, sifr_weight weight, sifr_weight bias,
                       sifr_value y, bool transposed) {
    const model_lora *lora = model->lora;
    char module[MODEL_NAME_LENGTH];
    const model_weight *w = y.id ? adapted(model, weight, module) : NULL;
    if (!w) return y;
    int32_t index = model_weight_index(weight);
    if (!w->adapter && !add_adapter(model, index, module, transposed)) return SIFR_NO_VALUE;
    int32_t a = model->weights[index].adapter;
    base_assert(a > 0); /* weight 0 is none of an adapter */
    double scale = model_lora_scale(lora, module);
    x = sifr_dropout(model, x, lora->dropout);
    /* The scale is applied where there are fewest columns. */
    sifr_value low = model_product(model, x, (sifr_weight){a + 1}, false);
    low = sifr_scale(model, (sifr_scale_args){.x = low, .factor = scale});
    sifr_value added = model_product(model, low, (sifr_weight){a + 2}, false);
    if (!lora->dora) return sifr_add(model, y, added);
    model_magnitude_args args = {.weight = weight,
                                 .a = {a + 1},
                                 .b = {a + 2},
                                 .magnitude = {a + 3},
                                 .bias = lora->dropout == 0 ? bias : SIFR_NO_WEIGHT,
                                 .scale = scale,
                                 .transposed = transposed};
    return adapt_magnitudes(model, x, y, added, &args);
}

static void mark_biases(sifr_model *model) {
    for (size_t n = 0; n < model->node_count; n++) {
        const model_node *node = &model->nodes[n];
        bool adapted = node->w[0] >= 0 && model->weights[node->w[0]].adapter;
        if (adapted && node->w[1] >= 0 && !model->weights[node->w[1]].factor)
            model->weights[node->w[1]].adapted_bias = true;
    }
}

static bool is_trained(const sifr_model *model, int32_t index) {
    const model_lora *lora = model->lora;
    const model_weight *w = &model->weights[index];
    size_t length = strlen(w->name);
    bool bias = length > 5 && !strcmp(w->name + length - 5, ".bias");
    if (w->factor || is_saved(lora, w->name)) return true;
    if (lora->bias == MODEL_LORA_ALL_BIASES) return bias;
    return lora->bias == MODEL_LORA_ITS_BIASES && w->adapted_bias;
}

/* A module that may get an adapter: the first product. */
static const char *example_of(const sifr_model *model, char module[MODEL_NAME_LENGTH]) {
    for (size_t n = 0; n < model->node_count; n++) {
        const model_node *node = &model->nodes[n];
        if (node->op == &model_op_linear && module_of(model->weights[node->w[0]].name, module))
            return module;
    }
    return "(none)";
}

/* Modules that were asked for and that have no adapter, since they are no products inside of the
 * model: refused, but for those that a pattern of all products takes with it. */
static void check_others(sifr_model *model) {
    char module[MODEL_NAME_LENGTH];
    size_t adapted = 0;
    for (size_t i = 0; i < model->weight_count; i++) {
        const model_weight *w = &model->weights[i];
        adapted += w->adapter > 0;
        if (w->adapter || w->factor || is_all_linear(model->lora_targets)) continue;
        if (!module_of(w->name, module) ||
            !model_lora_targets(model->lora, model->lora_targets, module))
            continue;
        MODEL_WRONG(model,
                    "%s: target_modules: %s is no product inside of the model: embeddings, norms, "
                    "convolutions and heads get no adapter here; name it in modules_to_save, or "
                    "leave it out",
                    model->lora->where, module);
        return;
    }
    if (adapted) return;
    MODEL_WRONG(model,
                "%s: target_modules: no module of the model has such a name; names look like %s",
                model->lora->where, example_of(model, module));
}

static void check_saved(sifr_model *model, const model_config *config) {
    const json_t *saved = json_object_get(model->lora->json, MODEL_LORA_SAVED);
    const model_architecture *architecture = model_architecture_find(config->model_type);
    for (size_t s = 0; s < json_array_size(saved); s++) {
        const char *name = json_string_value(json_array_get(saved, s));
        size_t i = 0;
        while (i < model->weight_count && !is_in_spelt(model->weights[i].name, name)) i++;
        bool tied = config->tie_word_embeddings && config->task == MODEL_NEXT_TOKEN &&
                    (is_in(architecture->head, name) || is_in(architecture->embedding, name));
        if (tied)
            MODEL_WRONG(model,
                        "%s: modules_to_save: %s shares its weight with the %s "
                        "(tie_word_embeddings), which is not built here; leave it out",
                        model->lora->where, name,
                        is_in(architecture->head, name) ? "embedding" : "head");
        if (i < model->weight_count || model->lora->stored) continue;
        if (model_task_labelled(config->task) && is_head(name)) continue;
        MODEL_WRONG(model, "%s: modules_to_save: no module of the model is called %s",
                    model->lora->where, name);
    }
}

void model_freeze_base(sifr_model *model, const model_config *config) {
    if (!model->lora || !model_ok(model)) return;
    if (config->multimodal && model->lora->bias == MODEL_LORA_ALL_BIASES)
        MODEL_WRONG(model,
                    "%s: bias \"all\" would also name the biases of the tower, which is not "
                    "trained; \"none\" and \"lora_only\" are built for model_type %s",
                    model->lora->where, config->model_type);
    mark_biases(model);
    check_others(model);
    check_saved(model, config);
    for (int32_t i = 0; i < (int32_t)model->weight_count; i++)
        model->weights[i].frozen = model->weights[i].based =
            model->weights[i].constant || !is_trained(model, i);
}

bool model_is_adapter(const sifr_model *model) {
    for (size_t i = 0; i < model->weight_count; i++)
        if (model->weights[i].factor) return true;
    return false;
}

const char *model_lora_tensor(const model_weight *weight, char *out) {
    base_assert(!weight->adapted_bias || strlen(weight->name) > strlen("bias"));
    int length = (int)strlen(weight->name) - (int)strlen("bias");
    if (weight->adapted_bias) /* the product is within what PEFT put in its place */
        snprintf(out, MODEL_LORA_NAME, MODEL_LORA_PREFIX "%.*sbase_layer.bias", length,
                 weight->name);
    else
        snprintf(out, MODEL_LORA_NAME, MODEL_LORA_PREFIX "%s", weight->name);
    return out;
}

bool model_lora_spelling(const model_weight *weight, int spelling, char *out) {
    char own[MODEL_LORA_NAME], spelt[FORMATS_SPELLING_LENGTH];
    const char *name = model_lora_tensor(weight, own) + strlen(MODEL_LORA_PREFIX);
    if (!formats_multimodal_spelling(name, spelling, spelt)) return false;
    int room = MODEL_LORA_NAME - (int)sizeof MODEL_LORA_PREFIX;
    snprintf(out, MODEL_LORA_NAME, MODEL_LORA_PREFIX "%.*s", room, spelt);
    return true;
}
