#include "model/registry.h"

#include <stdio.h>
#include <string.h>

static const model_architecture *const architectures[] = {
    &model_architecture_gpt2,         &model_architecture_llama,
    &model_architecture_mistral,      &model_architecture_qwen2,
    &model_architecture_qwen3,        &model_architecture_phi3,
    &model_architecture_smollm3,      &model_architecture_ministral,
    &model_architecture_ministral3,   &model_architecture_starcoder2,
    &model_architecture_gemma,        &model_architecture_gemma2,
    &model_architecture_olmo2,        &model_architecture_granite,
    &model_architecture_gemma3_text,  &model_architecture_olmo3,
    &model_architecture_glm4,         &model_architecture_gpt_neox,
    &model_architecture_bert,         &model_architecture_distilbert,
    &model_architecture_modernbert,   &model_architecture_roberta,
    &model_architecture_xlm_roberta,  &model_architecture_deberta_v2,
    &model_architecture_gemma3,       &model_architecture_mistral3,
    &model_architecture_qwen2_5_vl,   &model_architecture_qwen3_vl,
    &model_architecture_smolvlm,      &model_architecture_internvl,
    &model_architecture_glm4v,        &model_architecture_lfm2,
    &model_architecture_lfm2_vl,      &model_architecture_gemma4_text,
    &model_architecture_gemma4u_txt,  &model_architecture_gemma4,
    &model_architecture_gemma4u,      &model_architecture_arcee,
    &model_architecture_seed_oss,     &model_architecture_exaone4,
    &model_architecture_cohere,       &model_architecture_cohere2,
    &model_architecture_ernie4_5,     &model_architecture_hunyuan_v1_dense,
    &model_architecture_helium,       &model_architecture_internlm3,
    &model_architecture_cwm,          &model_architecture_phi,
    &model_architecture_stablelm,     &model_architecture_glm,
    &model_architecture_vaultgemma,   &model_architecture_nemotron,
    &model_architecture_olmo,         &model_architecture_nanochat,
    &model_architecture_qwen3_5_text, &model_architecture_qwen3_5,
    &model_architecture_apertus,      &model_architecture_opt,
    &model_architecture_falcon,       &model_architecture_bloom,
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
