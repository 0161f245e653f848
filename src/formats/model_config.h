/* config.json of a Hugging Face model folder, as a struct: GPT-2 and Llama. Absent keys get the
 * defaults of transformers (GPT2Config, LlamaConfig); every value is range-checked; a key that
 * would change the mathematics and is not built is refused by name. */
#ifndef FORMATS_MODEL_CONFIG_H
#define FORMATS_MODEL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

typedef enum formats_activation {
    FORMATS_GELU_TANH, /* "gelu_new", "gelu_pytorch_tanh" */
    FORMATS_GELU_ERF,  /* "gelu" */
    FORMATS_SILU       /* "silu", "swish" */
} formats_activation;

typedef enum formats_rope_kind {
    FORMATS_ROPE_DEFAULT,
    FORMATS_ROPE_LINEAR,
    FORMATS_ROPE_LLAMA3
} formats_rope_kind;

enum { FORMATS_EOS_LIMIT = 8 };

typedef struct formats_model_config {
    char model_type[32]; /* "gpt2" or "llama" */
    int64_t vocab_size, hidden_size, num_hidden_layers;
    int64_t num_attention_heads, num_key_value_heads, head_dim;
    int64_t intermediate_size; /* gpt2: n_inner, or 4 x hidden_size */
    int64_t max_position_embeddings;
    formats_activation activation;
    double norm_eps, rope_theta;
    formats_rope_kind rope_kind;
    double rope_factor; /* linear and llama3; 1 otherwise */
    double rope_low_freq_factor, rope_high_freq_factor, rope_original_max_position; /* llama3 */
    bool tie_word_embeddings;
    bool attention_bias; /* llama: on q, k, v and o; gpt2: always true */
    bool mlp_bias;
    double initializer_range;
    double embedding_dropout, residual_dropout, attention_dropout; /* in [0, 1) */
    int64_t bos_token_id, pad_token_id;                            /* -1 where absent */
    int64_t eos_token_ids[FORMATS_EOS_LIMIT];
    int eos_count;
} formats_model_config;

/* Parses `size` bytes of JSON; `name` (a path) begins the message of an error, SIFR_USAGE. */
sifr_status formats_model_config_parse(const char *text, size_t size, const char *name,
                                       formats_model_config *out,
                                       sifr_error *error) SIFR_MUST_CHECK;

/* Reads a config.json; `path` is the file or the model folder that holds it. */
sifr_status formats_model_config_load(const char *path, formats_model_config *out,
                                      sifr_error *error) SIFR_MUST_CHECK;

const char *formats_activation_name(formats_activation activation); /* as transformers writes it */
const char *formats_rope_kind_name(formats_rope_kind kind);

#endif
