#include "model/quantization.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/json.h"
#include "base/text.h"
#include "model/builder.h"
#include "model/lora.h"
#include "model/registry.h"

/* --- keys --- */

static const char *const keys[] = {"load_in_4bit",
                                   "bnb_4bit_quant_type",
                                   "bnb_4bit_use_double_quant",
                                   "bnb_4bit_compute_dtype",
                                   "bnb_4bit_quant_storage",
                                   "load_in_8bit",
                                   "llm_int8_threshold",
                                   "llm_int8_skip_modules",
                                   "llm_int8_enable_fp32_cpu_offload",
                                   "llm_int8_has_fp16_weight",
                                   "quant_method",
                                   "_load_in_4bit",
                                   "_load_in_8bit"};
enum { KEYS = sizeof keys / sizeof *keys };

static bool is_text(const json_t *value, const char *text) {
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

/* Whether the value of a key that has no effect here is its default. */
static bool is_default(const char *key, const json_t *value) {
    if (json_is_null(value) || json_is_false(value)) return true;
    if (strcmp(key, "bnb_4bit_quant_storage") == 0) return is_text(value, "uint8");
    if (strcmp(key, "quant_method") == 0) return is_text(value, "bitsandbytes");
    if (strcmp(key, "llm_int8_threshold") == 0) return json_number_value(value) == 6.0;
    return strcmp(key, "_load_in_4bit") == 0 && json_is_true(value);
}

static sifr_status check_keys(const json_t *json, const char *where, sifr_error *error) {
    enum { READ = 4 };
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)json, key, value) {
        size_t i = 0;
        while (i < KEYS && strcmp(key, keys[i]) != 0) i++;
        if (i < READ || (i < KEYS && is_default(key, value))) continue;
        if (i < KEYS)
            return base_fail(error, SIFR_USAGE, "%s: %s is not built here; leave it out", where,
                             key);
        const char *near = base_nearest(key, keys, KEYS);
        return base_fail(error, SIFR_USAGE, "%s: %.60s is no key of BitsAndBytesConfig%s%s", where,
                         key, near ? "; did you mean " : "", near ? near : "");
    }
    return SIFR_OK;
}

static sifr_status read_compute(const json_t *json, const char *where, base_dtype *out,
                                sifr_error *error) {
    static const struct {
        const char *name;
        base_dtype type;
    } types[] = {{"float32", BASE_FP32}, {"bfloat16", BASE_BF16}, {"float16", BASE_FP16}};
    const char *name;
    BASE_TRY(base_json_string(json, "bnb_4bit_compute_dtype", NULL, &name, where, error));
    if (!name) return SIFR_OK;
    if (strncmp(name, "torch.", 6) == 0) name += 6;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        *out = types[i].type;
        if (strcmp(types[i].name, name) == 0) return SIFR_OK;
    }
    return base_fail(error, SIFR_USAGE,
                     "%s: bnb_4bit_compute_dtype \"%.40s\" must be bfloat16, float16 or float32",
                     where, name);
}

sifr_status model_quantization_read(const json_t *json, const char *where, model_quantization *out,
                                    sifr_error *error) {
    bool four, doubled;
    const char *type;
    *out = (model_quantization){0};
    if (!json_is_object(json))
        return base_fail(error, SIFR_USAGE,
                         "%s must be an object with the keys of "
                         "BitsAndBytesConfig",
                         where);
    BASE_TRY(check_keys(json, where, error));
    BASE_TRY(base_json_bool(json, "load_in_4bit", false, &four, where, error));
    BASE_TRY(base_json_bool(json, "bnb_4bit_use_double_quant", false, &doubled, where, error));
    BASE_TRY(base_json_string(json, "bnb_4bit_quant_type", "fp4", &type, where, error));
    BASE_TRY(read_compute(json, where, &out->compute, error));
    if (!four)
        return base_fail(error, SIFR_USAGE,
                         "%s: load_in_4bit is not true; 4 bits are what is built here", where);
    if (strcmp(type, "nf4") != 0)
        return base_fail(
            error, SIFR_USAGE, "%s: bnb_4bit_quant_type %.40s%s is not built here; give \"nf4\"",
            where, type, json_object_get(json, "bnb_4bit_quant_type") ? "" : ", the default,");
    out->coding = doubled ? MODEL_NF4_DOUBLED : MODEL_NF4;
    return SIFR_OK;
}

/* --- in a description --- */

/* How often a weight is used by products, and otherwise. */
typedef struct weight_uses {
    int32_t products, transposed, others;
} weight_uses;

static void count_uses(const sifr_model *model, weight_uses *uses) {
    for (size_t n = 0; n < model->node_count; n++) {
        const model_node *node = &model->nodes[n];
        for (int i = 0; i < DEVICE_WEIGHTS; i++) {
            if (node->w[i] < 0) continue;
            weight_uses *of = &uses[node->w[i]];
            bool product = i == 0 && node->op == &model_op_linear;
            bool norms = i == 0 && node->op == &model_op_magnitude; /* of a product's columns */
            of->products += product;
            of->transposed += product && node->attributes.linear.transposed;
            of->others += !product && !norms;
        }
    }
}

void model_code_base(sifr_model *model, const model_config *config) {
    const model_architecture *architecture = model_architecture_find(config->model_type);
    const char *key = model_coding_key(config->coding);
    weight_uses *uses;
    size_t coded = 0;
    if (config->coding == MODEL_UNCODED || !model_ok(model)) return;
    if (base_alloc(model->weight_count, sizeof *uses, &uses, &model->error) != SIFR_OK) return;
    count_uses(model, uses);
    for (size_t i = 0; i < model->weight_count; i++) {
        model_weight *w = &model->weights[i];
        bool body = model_place_of(w->name, architecture->prefix) == MODEL_BODY;
        if (!w->frozen || w->size || !body || !uses[i].products || uses[i].others) continue;
        if (uses[i].transposed)
            MODEL_WRONG(model,
                        "%s: %s is stored transposed (Conv1D), and codes of such weights are not "
                        "built; leave %s out",
                        key, w->name, key);
        w->coding = w->logical_coding = config->coding;
        coded++;
    }
    free(uses);
    if (!coded) MODEL_WRONG(model, "%s: the model has no frozen weight of a product", key);
}
