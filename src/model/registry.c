#include "model/registry.h"

#include "model/lora.h"
#include "model/quantization.h"

#include <stdio.h>
#include <string.h>

static const model_architecture *const architectures[] = {
    &model_architecture_gpt2,        &model_architecture_llama,
    &model_architecture_mistral,     &model_architecture_qwen2,
    &model_architecture_qwen3,       &model_architecture_phi3,
    &model_architecture_smollm3,     &model_architecture_ministral,
    &model_architecture_ministral3,  &model_architecture_starcoder2,
    &model_architecture_gemma,       &model_architecture_gemma2,
    &model_architecture_olmo2,       &model_architecture_granite,
    &model_architecture_gemma3_text, &model_architecture_olmo3,
    &model_architecture_glm4,        &model_architecture_gpt_neox,
    &model_architecture_bert,        &model_architecture_distilbert,
    &model_architecture_modernbert,  &model_architecture_roberta,
    &model_architecture_xlm_roberta, &model_architecture_deberta_v2,
};

enum { COUNT = sizeof architectures / sizeof *architectures };

const model_architecture *model_architecture_find(const char *model_type) {
    for (size_t i = 0; i < COUNT; i++) {
        if (!strcmp(architectures[i]->model_type, model_type)) return architectures[i];
    }
    return NULL;
}

const model_class *model_class_of(const model_architecture *architecture, model_task task) {
    for (const model_class *kind = architecture->classes; kind->name; kind++) {
        if (kind->task == task) return kind;
    }
    return NULL;
}

const char *model_architecture_list(char *out, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < COUNT && used < size; i++) {
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "",
                                 architectures[i]->model_type);
    }
    return out;
}

sifr_status model_from_config(const model_config *config, sifr_model **out, sifr_error *error) {
    const model_architecture *architecture = model_architecture_find(config->model_type);
    if (!architecture) {
        char types[512];
        return base_fail(error, SIFR_USAGE,
                         "config.json: model_type \"%s\" is not supported yet (supported: %s)",
                         config->model_type, model_architecture_list(types, sizeof types));
    }
    sifr_model *model;
    BASE_TRY(sifr_model_create(&model, error));
    if (config->packed) sifr_pack(model);
    if (config->objective.row) model_learn(model, &config->objective);
    model->lora = config->lora;
    sifr_status status = SIFR_OK;
    if (config->lora)
        status = model_lora_complete(config->lora, config->model_type, &model->lora_targets, error);
    if (config->lora && status == SIFR_OK && model_task_labelled(config->task))
        status = model_lora_save_heads(config->lora, error);
    if (status == SIFR_OK) {
        architecture->build(model, config);
        model_freeze_base(model, config);
        model_code_base(model, config);
        status = sifr_model_finish(model, error);
    }
    model->lora = NULL;
    model->lora_targets = NULL;
    if (status != SIFR_OK) {
        sifr_model_free(model);
        return status;
    }
    *out = model;
    return SIFR_OK;
}

const char *model_name(char *out, const char *format, int64_t layer) {
    const char *at = strstr(format, "%d");
    int before = at ? (int)(at - format) : (int)strlen(format);
    if (at) {
        snprintf(out, MODEL_NAME_LENGTH, "%.*s%lld%s", before, format, (long long)layer, at + 2);
    } else {
        snprintf(out, MODEL_NAME_LENGTH, "%s", format);
    }
    return out;
}
