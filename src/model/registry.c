#include "model/registry.h"

#include <stdio.h>
#include <string.h>

static const model_architecture architectures[] = {
    {.model_type = "gpt2",
     .build = model_build_gpt2,
     .prefix = "transformer.",
     .ignored = {".attn.bias", ".attn.masked_bias"},
     .head = "lm_head.weight",
     .embedding = "transformer.wte.weight",
     .learned_positions = true},
    {.model_type = "llama",
     .build = model_build_llama,
     .prefix = "",
     .ignored = {".rotary_emb.inv_freq"},
     .head = "lm_head.weight",
     .embedding = "model.embed_tokens.weight"},
};

const model_architecture *model_architecture_find(const char *model_type) {
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
        if (!strcmp(architectures[i].model_type, model_type)) return &architectures[i];
    }
    return NULL;
}

sifr_status model_from_config(const formats_model_config *config, sifr_model **out,
                              sifr_error *error) {
    const model_architecture *architecture = model_architecture_find(config->model_type);
    if (!architecture) {
        return base_fail(
            error, SIFR_USAGE,
            "config.json: model_type \"%s\" is not supported yet (supported: gpt2, llama)",
            config->model_type);
    }
    bool gpt2 = architecture->build == model_build_gpt2;
    if (gpt2 == (config->activation == FORMATS_SILU)) {
        return base_fail(error, SIFR_USAGE,
                         "config.json: activation \"%s\" is not supported for %s (supported: %s)",
                         formats_activation_name(config->activation), config->model_type,
                         gpt2 ? "gelu_new, gelu" : "silu");
    }
    sifr_model *model;
    BASE_TRY(sifr_model_create(&model, error));
    architecture->build(model, config);
    sifr_status status = sifr_model_finish(model, error);
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
