/* What the rows of gguf_family.c are made of: names of weights and metadata. */
#ifndef FORMATS_GGUF_FAMILY_PARTS_H
#define FORMATS_GGUF_FAMILY_PARTS_H

#include "formats/gguf/gguf_family.h"

/* Each ends with a NULL. */
extern const formats_gguf_name formats_gguf_gpt2_names[], formats_gguf_gpt2_layer[];
extern const formats_gguf_name formats_gguf_llama_names[], formats_gguf_llama_layer[];
extern const formats_gguf_name formats_gguf_qwen_layer[], formats_gguf_olmo2_layer[];
extern const formats_gguf_name formats_gguf_starcoder2_layer[], formats_gguf_phi3_layer[];
extern const formats_gguf_name formats_gguf_neox_names[], formats_gguf_neox_layer[];
extern const formats_gguf_name formats_gguf_gemma_names[], formats_gguf_gemma_layer[];
extern const formats_gguf_name formats_gguf_gemma2_layer[], formats_gguf_gemma4_layer[];
extern const formats_gguf_name formats_gguf_glm4_layer[];
extern const formats_gguf_name formats_gguf_lfm2_names[], formats_gguf_lfm2_layer[];
extern const formats_gguf_name formats_gguf_qwen35_names[], formats_gguf_qwen35_layer[];

formats_gguf_keys formats_gguf_gpt2_keys, formats_gguf_llama_keys, formats_gguf_granite_keys,
    formats_gguf_plain_keys, formats_gguf_neox_keys, formats_gguf_gemma_keys,
    formats_gguf_gemma2_keys, formats_gguf_gemma3_keys, formats_gguf_gemma4_keys,
    formats_gguf_phi3_keys, formats_gguf_ministral3_keys, formats_gguf_olmo3_keys,
    formats_gguf_glm4_keys, formats_gguf_lfm2_keys, formats_gguf_qwen35_keys;

#endif
