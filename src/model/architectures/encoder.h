/* What encoders have in common, from BERT on: their keys in config.json, embeddings with token
 * types and learned positions, blocks with a norm behind each sum, and the head for masked words.
 * An architecture's own file puts the parts together. */
#ifndef MODEL_ENCODER_H
#define MODEL_ENCODER_H

#include "model/registry.h"

/* Reads BERT's keys. Fields of *out that are set are the defaults of absent keys. */
sifr_status encoder_read(const model_reader *r, model_config *out) SIFR_MUST_CHECK;
/* The checks that all encoders need: heads divide the width, and no key makes a decoder of it. */
sifr_status encoder_check(const model_reader *r, model_config *out) SIFR_MUST_CHECK;
/* "hidden_act" or as `key` says; absent: gelu. */
sifr_status encoder_read_activation(const model_reader *r, const char *key,
                                    model_activation_kind *out) SIFR_MUST_CHECK;

typedef struct encoder encoder;
typedef sifr_value (*encoder_part)(const encoder *e, sifr_value x);

/* Names of weights, without ".weight" and ".bias". */
typedef struct encoder_names {
    const char *words, *positions, *types, *embedding_norm;
    const char *layers; /* goes before ".N." and the names of a block */
    const char *query, *key, *value, *output, *attention_norm;
    const char *inner, *outer, *output_norm;
    const char *final_norm; /* behind the last block; NULL: none */
    /* The head for masked words. `bias` is the whole name of the tied decoder's bias. */
    const char *transform, *transform_norm, *decoder, *bias;
    /* The head for labels: what is between the body and dropout, and the product, whose name is
     * "classifier" where NULL. Of labels of tokens there is the product alone, unless both_pool. */
    encoder_part pool;
    const char *classifier;
    bool both_pool;
} encoder_names;

/* What BERT's layers are called, and with them those of many others: fields of encoder_names. */
#define ENCODER_BERT_LAYERS                                                                        \
    .query = "attention.self.query", .key = "attention.self.key", .value = "attention.self.value", \
    .output = "attention.output.dense", .attention_norm = "attention.output.LayerNorm",            \
    .inner = "intermediate.dense", .outer = "output.dense", .output_norm = "output.LayerNorm"

/* What files of BERT's first years call its norms, and buffers that they hold: fields of a row. */
#define ENCODER_BERT_FILES                                                                         \
    .older = {{".LayerNorm.weight", ".LayerNorm.gamma"}, {".LayerNorm.bias", ".LayerNorm.beta"}},  \
    .ignored = {".position_ids", ".token_type_ids", ".decoder.bias"}

/* The classes that most of them have in transformers, named after the family. */
#define ENCODER_CLASSES(family)                                                                    \
    (const model_class[]) {                                                                        \
        {family "ForMaskedLM", MODEL_MASKED_TOKEN}, {family "Model", MODEL_MASKED_TOKEN},          \
            {family "ForSequenceClassification", MODEL_SEQUENCE_CLASSES},                          \
            {family "ForTokenClassification", MODEL_TOKEN_CLASSES}, {                              \
            0                                                                                      \
        }                                                                                          \
    }

/* The model that is being built, and its layer; -1: outside of the layers. */
struct encoder {
    sifr_model *model;
    const model_config *config;
    const encoder_names *names;
    int64_t layer;
    sifr_weight words;    /* the table of the embedding */
    double out_deviation; /* of fresh weights that lead out of a block or the head; 0: as all */
};

/* Each is named NAME.weight and NAME.bias; in a layer, the names of layers go before. */
sifr_value encoder_linear(const encoder *e, sifr_value x, const char *name, bool biased,
                          int64_t from, int64_t to);
/* The same whose fresh weights have out_deviation. */
sifr_value encoder_linear_out(const encoder *e, sifr_value x, const char *name, bool biased,
                              int64_t from, int64_t to);
/* The config's norm of hidden_size columns. */
sifr_value encoder_norm(const encoder *e, sifr_value x, const char *name);

/* Rows of the words' table, which stays in e->words. */
sifr_value encoder_words(encoder *e);
/* Words, token types where the config has them and learned positions, normalised. */
sifr_value encoder_embedding(encoder *e);

/* Attention in both directions within real tokens; padding, a segment of its own, sees padding. */
sifr_value encoder_attend(const encoder *e, sifr_value q, sifr_value k, sifr_value v);

/* BERT's block: attention and MLP, a norm behind the sum of each with what came in. */
sifr_value encoder_plain_block(const encoder *e, sifr_value x);
/* A unit for each layer. */
sifr_value encoder_layers(encoder *e, sifr_value x, encoder_part block);

/* The unit of the head that the config's task has, up to the loss. */
void encoder_head(encoder *e, sifr_value x);

/* Activation, norm and the first product of the head for masked words. */
sifr_value encoder_transform(const encoder *e, sifr_value x);

/* Embedding, plain blocks and head. */
void encoder_build(sifr_model *model, const model_config *config, const encoder_names *names);

#endif
