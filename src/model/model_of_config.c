/* The description of the model that a config names: an architecture's, with adapters and codes. */
#include <string.h>

#include "model/lora.h"
#include "model/quantization.h"
#include "model/registry.h"

sifr_status model_from_config(const model_config *config, sifr_model **out, sifr_error *error) {
    const model_architecture *architecture = model_architecture_find(config->model_type);
    if (!architecture) {
        char types[1024];
        return base_fail(error, SIFR_USAGE,
                         "config.json: model_type \"%s\" is not supported yet (supported: %s)",
                         config->model_type, model_architecture_list(types, sizeof types));
    }
    if (config->multimodal) architecture = model_architecture_find(config->text_type);
    sifr_model *model;
    BASE_TRY(sifr_model_create(&model, error));
    memcpy(model->media, config->media, sizeof model->media);
    model->media_count = config->media_count;
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
