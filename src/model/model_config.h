/* config.json of a Hugging Face model folder, as a struct. Each architecture has a reader for its
 * own keys (registry.h). Absent keys get the defaults of transformers' config class; every value is
 * range-checked; a key that would change the mathematics and is not built is refused by name. */
#ifndef MODEL_MODEL_CONFIG_H
#define MODEL_MODEL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "formats/generation_config.h"
#include "formats/multimodal.h"
#include "model/coding.h"
#include "model/model_objective.h"
#include "model/rope.h"
#include "sifr/model.h"

typedef enum model_activation_kind {
    MODEL_GELU_TANH, /* "gelu_new", "gelu_pytorch_tanh" */
    MODEL_GELU_ERF,  /* "gelu" */
    MODEL_SILU,      /* "silu", "swish" */
    MODEL_RELU,
    MODEL_RELU_SQUARED, /* "relu2" */
    MODEL_TANH,
    MODEL_QUICK_GELU,
    MODEL_XIELU /* with weights of its own: Apertus' alone */
} model_activation_kind;

typedef enum model_norm_kind {
    MODEL_RMS_NORM,
    MODEL_RMS_NORM_PLUS_ONE,  /* multiplies by 1 + weight */
    MODEL_RMS_NORM_BARE,      /* without a weight */
    MODEL_LAYER_NORM,         /* with a bias */
    MODEL_LAYER_NORM_PLAIN,   /* without */
    MODEL_LAYER_NORM_BARE,    /* without a weight, too */
    MODEL_LAYER_NORM_PLUS_ONE /* with a bias, multiplies by 1 + weight */
} model_norm_kind;

/* What a model is trained for; which of them a model_type has, its row of the registry says. */
typedef enum model_task {
    MODEL_NEXT_TOKEN,
    MODEL_MASKED_TOKEN,
    MODEL_SEQUENCE_CLASSES, /* labels of a whole sequence, at one of its tokens */
    MODEL_TOKEN_CLASSES     /* a label of each token */
} model_task;

/* What the labels of a sequence are. */
typedef enum model_problem {
    MODEL_SINGLE_LABEL, /* one of num_labels */
    MODEL_MULTI_LABEL,  /* each of num_labels, or not */
    MODEL_REGRESSION    /* num_labels numbers */
} model_problem;

#define MODEL_LIMIT_LAYERS 10000
#define MODEL_LIMIT_LABELS (INT64_C(1) << 20)

/* How a layer differs from the plain one: bits. */
enum {
    MODEL_LAYER_WINDOW = 1,      /* attention sees sliding_window keys */
    MODEL_LAYER_NO_ROPE = 2,     /* no rotary positions */
    MODEL_LAYER_LOCAL_ROPE = 4,  /* those of local_rope */
    MODEL_LAYER_CONVOLUTION = 8, /* a short convolution in place of attention */
    MODEL_LAYER_LINEAR = 16      /* linear attention: the gated delta rule */
};

/* Heads of linear attention: a key head serves as many value heads as there are for each. */
typedef struct model_linear_heads {
    int64_t keys, values, key_dim, value_dim;
} model_linear_heads;

/* What DeBERTa adds. */
typedef struct model_deberta {
    int64_t embedding_size; /* columns of the tables of words, positions and types */
    bool position_table;
    /* Relative positions: rows of their table, 0 where there is none; sifr_attention_args. */
    int64_t rows, buckets, most_distance;
    bool by_query, by_key; /* rows are multiplied with queries, with keys */
    bool shared;           /* their products have the weights of keys and of queries */
    bool normalised;       /* the table is */
    int64_t convolution;   /* its size, behind the first block; 0: none */
    bool legacy_head;      /* the names of the head for masked words */
    model_activation_kind conv_activation, pooler_activation;
    double pooler_dropout;
} model_deberta;

/* Numbers that multiply or cap are 0 where there are none. */
typedef struct model_config {
    char model_type[32]; /* of a row of the registry */
    /* Of a folder with a tower, else NULL: what it is, the plain decoder that its text model is,
     * and the ids that text may not have. */
    const formats_multimodal *multimodal;
    char text_type[32];
    formats_media media[FORMATS_MEDIA_LIMIT];
    int media_count;
    model_task task, own_task;     /* own: as "architectures" says, whatever a caller chose */
    model_problem problem;         /* of sequence classes */
    bool packed;                   /* as chosen */
    const struct model_lora *lora; /* adapters, as chosen; NULL: none. Borrowed. */
    model_coding coding;           /* of frozen weights of products, as chosen */
    /* Of either kind of classes, else 0; own: as config.json says, 0 if it is for another task. */
    int64_t num_labels, own_labels;
    int64_t vocab_size, hidden_size, num_hidden_layers;
    int64_t num_attention_heads, num_key_value_heads, head_dim;
    int64_t full_head_dim, full_kv_heads; /* of layers without a window; 0: as of the others */
    bool full_keys_are_values;            /* there; they have no product for values */
    /* The last layers, which have keys and values of the last layer before them of their own kind,
     * with a window or without; and whether their MLP is twice as wide. */
    int64_t shared_kv_layers;
    bool wide_shared_mlp;
    /* Columns that each layer reads beside its input, 0: none; and the rows of their table. */
    int64_t layer_input_size, layer_input_words;
    int64_t intermediate_size;
    int64_t max_position_embeddings;
    int64_t first_position; /* row of a table of learned positions that position 0 has */
    model_activation_kind activation;
    model_norm_kind norm;
    double norm_eps;
    /* The part of a head that has rotary positions where "rope_parameters" does not say; 0: all of
     * it, and no other part can be asked for. */
    double rotary_part;
    model_rope rope, local_rope;
    int64_t sliding_window; /* 0: no layer has one */
    uint8_t layers[MODEL_LIMIT_LAYERS];
    bool tie_word_embeddings;
    bool attention_bias; /* on q, k and v */
    bool output_bias;    /* on o */
    bool mlp_bias;
    bool parallel_residual;   /* attention and MLP have the same input */
    bool norms_behind;        /* of sums, in place of what attention and MLP read */
    bool own_norms;           /* attention and MLP that have the same input have a norm each */
    int64_t word_size;        /* columns of the embedding, if a product makes hidden_size of them */
    bool head_norms;          /* norms of each query and key, where a family may lack them */
    int64_t convolution_size; /* tokens that a layer's short convolution sees */
    bool convolution_bias;    /* there, and on the products around it */
    model_linear_heads linear; /* of layers with linear attention */
    double qkv_limit;          /* what q, k and v are clipped to */
    double attention_scale;    /* of scores; 0: 1/sqrt(head_dim) */
    double attention_softcap;
    double attention_alibi; /* a bias of scores by distance: sifr_attention_args */
    double embedding_scale, residual_scale, logit_scale;
    bool embedding_scale_rounded; /* to the type of the activations */
    double logit_softcap;
    double initializer_range;
    double initializer_cutoff; /* in deviations; 0: none */
    double label_range;        /* of a head for labels; 0: initializer_range */
    double embedding_dropout, residual_dropout, attention_dropout; /* in [0, 1) */
    double classifier_dropout;                                     /* before a head for labels */
    bool mean_pooling; /* a label's head reads the mean of all tokens, not the first one */
    int64_t bos_token_id, pad_token_id; /* -1 where absent */
    /* Of encoders. */
    int64_t type_vocab_size;         /* token types; 0: none are read */
    double attention_output_dropout; /* of o */
    double inner_dropout;            /* of what the MLP's last product reads */
    model_activation_kind head_activation;
    bool head_bias, decoder_bias; /* of the head's first product; of the logits of words */
    model_deberta deberta;
    int64_t eos_token_ids[FORMATS_EOS_LIMIT];
    int eos_count;
    bool undropped;            /* as chosen, where the folder has some dropout */
    model_objective objective; /* as chosen */
} model_config;

/* What a caller wants of a model in place of what its config.json says. */
typedef struct model_choice {
    bool has_task, has_problem;
    model_task task;
    model_problem problem;
    int64_t num_labels; /* 0: those of config.json */
    /* Only for next tokens. */
    bool packed;                   /* sequences hold several documents: sifr_pack */
    const struct model_lora *lora; /* lora.h; NULL: none. Lives as long as the config is used. */
    model_coding coding;           /* quantization.h; with adapters alone */
    model_objective objective;
    bool undropped; /* dropout is off, whatever the folder says */
    bool untied;    /* of a folder with a tower: its head has weights of its own */
} model_choice;

/* Parses `size` bytes of JSON; `name` (a path) begins the message of an error, SIFR_USAGE. */
sifr_status model_config_parse(const char *text, size_t size, const char *name, model_config *out,
                               sifr_error *error) SIFR_MUST_CHECK;
/* With a choice, which may be NULL. */
sifr_status model_config_parse_as(const char *text, size_t size, const char *name,
                                  const model_choice *choice, model_config *out,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* Reads a config.json; `path` is the file or the model folder that holds it. */
sifr_status model_config_load(const char *path, model_config *out,
                              sifr_error *error) SIFR_MUST_CHECK;
sifr_status model_config_load_as(const char *path, const model_choice *choice, model_config *out,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* "causal_lm", "masked_lm", "sequence_classification" or "token_classification"; and the value of
 * "problem_type". */
const char *model_task_name(model_task task);
const char *model_problem_name(model_problem problem);
bool model_task_find(const char *name, model_task *out);
bool model_problem_find(const char *name, model_problem *out);
/* Whether a task has labels of its own, in place of tokens. */
static inline bool model_task_labelled(model_task task) {
    return task == MODEL_SEQUENCE_CLASSES || task == MODEL_TOKEN_CLASSES;
}

/* The positions of a sequence that the model has or was trained with. */
static inline int64_t model_positions(const model_config *config) {
    return config->max_position_embeddings - config->first_position;
}

const char *model_activation_name(model_activation_kind activation); /* as transformers writes it */

#endif
