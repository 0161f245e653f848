/* What decoders with rotary positions and root-mean-square norms have in common, from Llama on:
 * their keys in config.json, and the parts of their blocks. An architecture's own file puts the
 * parts together. */
#ifndef MODEL_DECODER_H
#define MODEL_DECODER_H

#include "model/architectures/label_head.h"
#include "model/registry.h"

/* The classes that most of them have in transformers, named after the family. */
#define DECODER_CLASSES(family)                                                                    \
    (const model_class[]) {                                                                        \
        {family "ForCausalLM", MODEL_NEXT_TOKEN}, {family "Model", MODEL_NEXT_TOKEN},              \
            {family "ForSequenceClassification", MODEL_SEQUENCE_CLASSES},                          \
            {family "ForTokenClassification", MODEL_TOKEN_CLASSES}, {                              \
            0                                                                                      \
        }                                                                                          \
    }

/* Reads the keys that these decoders share. Fields of *out that are set are the defaults of absent
 * keys; num_key_value_heads 0: as many as heads; head_dim 0: hidden_size / num_attention_heads. */
sifr_status decoder_read(const model_reader *r, model_config *out) SIFR_MUST_CHECK;
/* Whether heads divide each other, can be turned, and are not too many; decoder_read asks. */
sifr_status decoder_check_heads(const model_reader *r, const model_config *c) SIFR_MUST_CHECK;
/* All but rotary positions. */
sifr_status decoder_read_keys(const model_reader *r, model_config *out) SIFR_MUST_CHECK;

/* "partial_rotary_factor": null is the whole head. */
sifr_status decoder_read_rotary_part(const model_reader *r, double fallback,
                                     model_config *out) SIFR_MUST_CHECK;
/* "hidden_act" of a gated MLP; absent: silu. */
sifr_status decoder_read_gate(const model_reader *r, model_config *out) SIFR_MUST_CHECK;
/* The same of an MLP without a gate, which may also have relu and its square. */
sifr_status decoder_read_activation(const model_reader *r, model_activation_kind fallback,
                                    model_config *out) SIFR_MUST_CHECK;
/* "layer_norm_eps", of layer norms. */
sifr_status decoder_read_layer_eps(const model_reader *r, model_config *out) SIFR_MUST_CHECK;
/* Refuses heads whose width is not hidden_size / num_attention_heads, after decoder_read. */
sifr_status decoder_check_width(const model_reader *r, const model_config *out) SIFR_MUST_CHECK;
/* Gives layers from `first` on the window, if sliding_window is set. */
void decoder_set_windows(model_config *config, int64_t first);
/* sliding_window (absent: 4096) and layer_types; without the latter all layers but each `period`th
 * have the window. */
sifr_status decoder_read_windows(const model_reader *r, int64_t period,
                                 model_config *out) SIFR_MUST_CHECK;
/* Refuses layers with a window where there is none. */
sifr_status decoder_check_windows(const model_reader *r, const model_config *c) SIFR_MUST_CHECK;
/* sliding_window, use_sliding_window, max_window_layers and layer_types, as Qwen has them. */
sifr_status decoder_read_qwen_windows(const model_reader *r, model_config *out) SIFR_MUST_CHECK;

/* Names of weights: of those around the blocks, and what goes before "N." inside of them. */
typedef struct decoder_names {
    const char *embedding, *layers, *norm, *head; /* norm NULL: there is none behind the blocks */
    const char *embedded;                         /* a norm of the embedding; NULL: none */
    const char *positions;                        /* a table of learned positions; NULL: none */
    const char *before, *after; /* with word_size: products behind the embedding, and before the
                                   head, without biases */
    const char *head_bias;      /* of the logits; NULL: none */
    bool unpadded;              /* the embedding has no padding_idx */
    const char *tokens;         /* the head for labels of tokens; NULL: "score" */
} decoder_names;

/* The layer that is being built. */
typedef struct decoder {
    sifr_model *model;
    const model_config *config;
    const decoder_names *names;
    int64_t layer;
    void *handed; /* the family's own: what layers hand to later ones; NULL: nothing */
} decoder;

typedef sifr_value (*decoder_block)(const decoder *d, sifr_value x);

/* Embedding, blocks, final norm and head. `block` adds one layer and returns its output. The first
 * has Llama's names. */
void decoder_build(sifr_model *model, const model_config *config, decoder_block block);
/* The same with another name of the final norm: "norm". */
void decoder_build_body(sifr_model *model, const model_config *config, const char *norm,
                        decoder_block block);
void decoder_build_named(sifr_model *model, const model_config *config, const decoder_names *names,
                         decoder_block block);

/* The same of layers that read more than the one before them made. `before`, which may be NULL,
 * adds units between the embedding and the first layer, and gets and returns what the embedding
 * made. */
typedef struct decoder_family {
    decoder_block before, block;
    void *handed; /* decoder.handed */
} decoder_family;
void decoder_build_family(sifr_model *model, const model_config *config,
                          const decoder_family *family);

/* Llama's block: a norm before each part, and its sum with what came in. */
sifr_value decoder_plain_block(const decoder *d, sifr_value x);

/* In each name of a weight "model.layers.N." goes before, ".weight" or ".bias" behind. */

/* The config's norm of hidden_size columns; and of each of `groups` groups of columns. */
sifr_value decoder_norm(const decoder *d, sifr_value x, const char *name);
sifr_value decoder_group_norm(const decoder *d, sifr_value x, const char *name, int64_t groups,
                              int64_t columns);
sifr_value decoder_linear(const decoder *d, sifr_value x, const char *name, bool biased,
                          int64_t from, int64_t to);
/* x + residual_scale * dropout(part) */
sifr_value decoder_add(const decoder *d, sifr_value x, sifr_value part);

typedef struct decoder_heads {
    sifr_value q, k, v;
} decoder_heads;

/* self_attn.{q,k,v}_proj of a normed x; and slices of q, k and v beside each other. */
decoder_heads decoder_project(const decoder *d, sifr_value x);
decoder_heads decoder_split(const decoder *d, sifr_value qkv);
/* Rotary positions, where the layer has them; of keys where there are some. */
decoder_heads decoder_rotate(const decoder *d, decoder_heads heads);
/* Attention, with the window where the layer has one, and the product `output`,
 * "self_attn.o_proj". */
sifr_value decoder_attend_rotated(const decoder *d, decoder_heads heads, const char *output);
/* Both. */
sifr_value decoder_attend(const decoder *d, decoder_heads heads, const char *output);
/* decoder_project and decoder_attend; the second has norms of each head between them,
 * self_attn.{q,k}_norm. */
sifr_value decoder_attention(const decoder *d, sifr_value x);
sifr_value decoder_normed_attention(const decoder *d, sifr_value x);

/* mlp.{gate,up,down}_proj of a normed x; and with gate and up in one, mlp.gate_up_proj. */
sifr_value decoder_mlp(const decoder *d, sifr_value x);
sifr_value decoder_fused_mlp(const decoder *d, sifr_value x);
/* The config's activation of `gate`, times `up`. */
sifr_value decoder_gate(const decoder *d, sifr_value gate, sifr_value up);
/* Without a gate: the product `up`, the activation, the product `down`. */
sifr_value decoder_plain_mlp(const decoder *d, sifr_value x, const char *up, const char *down);

#endif
