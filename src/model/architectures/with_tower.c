/* Models with a tower, as transformers' classes for conditional generation have them: Gemma 3,
 * Gemma 4, Mistral Small 3 and Ministral 3, Qwen 2.5 and 3 VL, Qwen 3.5, SmolVLM, InternVL and
 * GLM-4.1V. The text model of each is a plain decoder's (formats/multimodal.c says which); with
 * text alone the rest of the folder has no part in it. */
#include "model/registry.h"

#define LANGUAGE_MODEL "model.language_model."

#define MULTIMODAL(name, kind, type, class, body)                                                  \
    const model_architecture model_architecture_##name = {                                         \
        .model_type = type,                                                                        \
        .classes = (const model_class[]){{class, MODEL_NEXT_TOKEN}, {0}},                          \
        .prefix = "",                                                                              \
        .head = "lm_head.weight",                                                                  \
        .embedding = body "embed_tokens.weight",                                                   \
        .multimodal = &formats_multimodals[kind],                                                  \
    }

MULTIMODAL(gemma3, FORMATS_GEMMA3, "gemma3", "Gemma3ForConditionalGeneration", LANGUAGE_MODEL);
MULTIMODAL(mistral3, FORMATS_MISTRAL3, "mistral3", "Mistral3ForConditionalGeneration",
           LANGUAGE_MODEL);
MULTIMODAL(qwen2_5_vl, FORMATS_QWEN2_5_VL, "qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration",
           LANGUAGE_MODEL);
MULTIMODAL(qwen3_vl, FORMATS_QWEN3_VL, "qwen3_vl", "Qwen3VLForConditionalGeneration",
           LANGUAGE_MODEL);
MULTIMODAL(qwen3_5, FORMATS_QWEN3_5, "qwen3_5", "Qwen3_5ForConditionalGeneration", LANGUAGE_MODEL);
MULTIMODAL(smolvlm, FORMATS_SMOLVLM, "smolvlm", "SmolVLMForConditionalGeneration",
           "model.text_model.");
MULTIMODAL(internvl, FORMATS_INTERNVL, "internvl", "InternVLForConditionalGeneration",
           LANGUAGE_MODEL);
MULTIMODAL(gemma4, FORMATS_GEMMA4, "gemma4", "Gemma4ForConditionalGeneration", LANGUAGE_MODEL);
MULTIMODAL(gemma4u, FORMATS_GEMMA4_UNIFIED, "gemma4_unified",
           "Gemma4UnifiedForConditionalGeneration", LANGUAGE_MODEL);
MULTIMODAL(glm4v, FORMATS_GLM4V, "glm4v", "Glm4vForConditionalGeneration", LANGUAGE_MODEL);
MULTIMODAL(lfm2_vl, FORMATS_LFM2_VL, "lfm2_vl", "Lfm2VlForConditionalGeneration", LANGUAGE_MODEL);
