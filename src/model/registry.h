/* The registry of architectures: a row reads the keys of its config.json, builds the description of
 * the model, and defines the names of weights in files. */
#ifndef MODEL_REGISTRY_H
#define MODEL_REGISTRY_H

#include "model/description.h"
#include "model/model_config.h"
#include "model/model_reader.h"

/* A class of transformers: its name in "architectures", and what it is trained for. */
typedef struct model_class {
    const char *name;
    model_task task;
} model_class;

typedef struct model_architecture {
    const char *model_type; /* of config.json */
    /* Those that can be opened, the usual one of each task before others of it, and first of all
     * the one that an absent "architectures" means; a name of NULL ends the list. */
    const model_class *classes;
    /* Attention sees what follows: the model does not generate, and a sequence's label stands at
     * its first token, else at the last one that is no padding. */
    bool encoder;
    /* The keys that it reads among those that others are refused for (refused_keys.c); NULL ends
     * the list, or stands for none. */
    const char *const *keys;
    /* Fills in the config, whose pad_token_id and bos_token_id are -1 and whose other fields are 0.
     * initializer_range (0: 0.02) and pad_token_id are read after it, with what it has set as their
     * defaults. */
    sifr_status (*read)(const model_reader *reader, model_config *out);
    /* Calls the builder; mistakes stay in the model until sifr_model_finish. */
    void (*build)(sifr_model *model, const model_config *config);
    /* The prefix that names of weights may lack in older files (without it they are the same). */
    const char *prefix;
    /* What names of weights end in, and what they end in in files of old versions. */
    struct {
        const char *now, *before;
    } older[2];
    /* Suffixes of tensors in files that are not weights: buffers of old versions. */
    const char *ignored[4];
    const char *head; /* name of the head's weight: absent from files, or a copy, where tied */
    const char *embedding;
    /* Positions are rows of a table, so there is no position beyond max_position_embeddings;
     * otherwise they are rotary angles, which have no end. */
    bool learned_positions;
    /* Of a folder with a tower: its text model is read and built by the row of a plain decoder, so
     * it has neither `read` nor `build`. Tensors that are not of the text model go along. */
    const formats_multimodal *multimodal;
} model_architecture;

extern const model_architecture model_architecture_gpt2, model_architecture_llama,
    model_architecture_mistral, model_architecture_qwen2, model_architecture_qwen3,
    model_architecture_phi3, model_architecture_smollm3, model_architecture_ministral,
    model_architecture_ministral3, model_architecture_starcoder2, model_architecture_gemma,
    model_architecture_gemma2, model_architecture_olmo2, model_architecture_granite,
    model_architecture_gemma3_text, model_architecture_olmo3, model_architecture_glm4,
    model_architecture_gpt_neox, model_architecture_bert, model_architecture_distilbert,
    model_architecture_modernbert, model_architecture_roberta, model_architecture_xlm_roberta,
    model_architecture_deberta_v2, model_architecture_gemma3, model_architecture_mistral3,
    model_architecture_qwen2_5_vl, model_architecture_qwen3_vl, model_architecture_smolvlm,
    model_architecture_internvl, model_architecture_glm4v, model_architecture_lfm2,
    model_architecture_lfm2_vl, model_architecture_gemma4_text, model_architecture_gemma4u_txt,
    model_architecture_gemma4, model_architecture_gemma4u, model_architecture_arcee,
    model_architecture_seed_oss, model_architecture_exaone4, model_architecture_cohere,
    model_architecture_cohere2, model_architecture_ernie4_5, model_architecture_hunyuan_v1_dense,
    model_architecture_helium, model_architecture_internlm3, model_architecture_cwm,
    model_architecture_phi, model_architecture_stablelm, model_architecture_glm,
    model_architecture_qwen3_5_text, model_architecture_qwen3_5, model_architecture_vaultgemma,
    model_architecture_nemotron, model_architecture_olmo, model_architecture_nanochat,
    model_architecture_apertus, model_architecture_opt, model_architecture_falcon,
    model_architecture_bloom;

/* NULL for a type that is not supported. */
const model_architecture *model_architecture_find(const char *model_type);

/* The usual class of a task; NULL where there is none. */
const model_class *model_class_of(const model_architecture *architecture, model_task task);

/* Where a weight or a tensor of a file stands, as its name says; `prefix` may stand before it. */
typedef enum model_place {
    MODEL_BODY,
    MODEL_BEFORE_HEAD, /* between them: poolers, which several heads share */
    MODEL_HEAD
} model_place;
model_place model_place_of(const char *name, const char *prefix);

/* The supported types, separated by commas, for messages; returns out. */
const char *model_architecture_list(char *out, size_t size);

/* The finished description for a config; free with sifr_model_free. */
sifr_status model_from_config(const model_config *config, sifr_model **out,
                              sifr_error *error) SIFR_MUST_CHECK;

/* "layers.3.mlp" from "layers.%d.mlp" and 3; out has MODEL_NAME_LENGTH bytes. Returns out. */
#define MODEL_NAME_LENGTH 128
const char *model_name(char *out, const char *format, int64_t layer);

#endif
