/* What decoders with rotary positions and root-mean-square norms have in common, from Llama on:
 * their keys in config.json, and the parts of their blocks. An architecture's own file puts the
 * parts together. */
#ifndef MODEL_DECODER_H
#define MODEL_DECODER_H

#include "model/registry.h"

/* Reads the keys that these decoders share. Fields of *out that are set are the defaults of absent
 * keys; num_key_value_heads 0: as many as heads; head_dim 0: hidden_size / num_attention_heads. */
sifr_status decoder_read(const model_reader *r, model_config *out) SIFR_MUST_CHECK;

/* The layer that is being built. */
typedef struct decoder {
    sifr_model *model;
    const model_config *config;
    const double *frequencies; /* head_dim / 2 */
    int64_t layer;
} decoder;

/* Embedding, blocks, final norm and head. `block` adds one layer and returns its output. */
void decoder_build(sifr_model *model, const model_config *config,
                   sifr_value (*block)(const decoder *d, sifr_value x));

/* In each name "model.layers.N." goes before, ".weight" or ".bias" behind. */
sifr_value decoder_norm(const decoder *d, sifr_value x, const char *name);
sifr_value decoder_linear(const decoder *d, sifr_value x, const char *name, bool biased,
                          int64_t from, int64_t to);

/* self_attn.{q,k,v,o}_proj of a normed x, with rotary positions. */
sifr_value decoder_attention(const decoder *d, sifr_value x);
/* mlp.{gate,up,down}_proj of a normed x. */
sifr_value decoder_mlp(const decoder *d, sifr_value x);

#endif
