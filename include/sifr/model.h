/* Describes a model as a list of units. A unit is a sequence of op calls, as one would write it on
 * paper. There is no backward code: sifr knows the gradient of each op.
 *
 *     a = sifr_attention(b, (sifr_attention_args){.q = q, .k = k, .v = v, .heads = 8, .kv_heads =
 * 2}); h = sifr_add(b, x, sifr_linear(b, a, w_o, SIFR_NO_WEIGHT));
 *
 * Ops with more than a few operands take a struct with named fields. A field that is left out is 0,
 * which always leaves the feature off, so that a new field changes no model that lacks it.
 *
 * Every value is a matrix of tokens x columns. The number of tokens is fixed only when the model is
 * used, so one description fits every batch size and sequence length. A wrong call (shapes that do
 * not match, a name used twice) is recorded and reported by sifr_model_finish; later calls do
 * nothing.
 */
#ifndef SIFR_MODEL_H
#define SIFR_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "sifr/objective.h"
#include "sifr/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sifr_value {
    int32_t id; /* 0: none */
} sifr_value;

typedef struct sifr_weight {
    int32_t id; /* 0: none */
} sifr_weight;

#define SIFR_NO_VALUE ((sifr_value){0})
#define SIFR_NO_WEIGHT ((sifr_weight){0})

/* Initial values of a weight that is not loaded from a file. */
typedef enum sifr_init {
    SIFR_INIT_ZERO,
    SIFR_INIT_ONE,
    SIFR_INIT_NORMAL,  /* mean 0, `deviation` */
    SIFR_INIT_UNIFORM, /* from -deviation to deviation */
    SIFR_INIT_LOG      /* the logarithm of a number from 0.01 to 16 */
} sifr_init;

/* An empty description; free with sifr_model_free, unless an engine has taken it over. */
SIFR_API sifr_status sifr_model_create(sifr_model **out, sifr_error *error) SIFR_MUST_CHECK;
SIFR_API void sifr_model_free(sifr_model *model); /* NULL is harmless */

/* Sequences may hold several documents, one behind the other, that do not see each other. Attention
 * and neighbours that are given no segments get SIFR_SEGMENTS, and positions are those of the batch
 * (sifr_batch.positions), so that each document can begin at 0. Call it before the first unit. */
SIFR_API void sifr_pack(sifr_model *model);

/* Begins a unit, the part of a model that is gathered, recomputed and released as a whole: the
 * embedding, one transformer block, the head. All weights and ops up to the next call belong to it.
 */
SIFR_API void sifr_unit(sifr_model *model, const char *name);

/* Adds a weight to the current unit: rows x columns, row-major; a vector has one row. `name` is its
 * name in safetensors files. `deviation` is the standard deviation for SIFR_INIT_NORMAL (mean 0).
 */
SIFR_API sifr_weight sifr_weight_matrix(sifr_model *model, const char *name, int64_t rows,
                                        int64_t columns, sifr_init init, double deviation);
/* rows x (columns size), for sifr_unfold and sifr_short_conv; in files rows x columns x size, as
 * torch.nn.Conv1d has it. */
SIFR_API sifr_weight sifr_weight_kernel(sifr_model *model, const char *name, int64_t rows,
                                        int64_t columns, int64_t size, sifr_init init,
                                        double deviation);
SIFR_API sifr_weight sifr_weight_vector(sifr_model *model, const char *name, int64_t columns,
                                        sifr_init init);

/* The inputs of a model, each a whole number for each token, but for the targets. What a model does
 * not ask for takes no memory, and a batch need not give it. */
typedef enum sifr_input {
    SIFR_TOKENS,      /* ids; every model reads them */
    SIFR_LABELS,      /* of the loss; -100: none */
    SIFR_POSITIONS,   /* in the sequence, from 0 on; of a packed model the batch's, if it has any */
    SIFR_TOKEN_TYPES, /* BERT's: 0 for the first text of a pair, 1 for the second */
    /* Attention that is given them stays within tokens of one segment: padding is a segment of its
     * own, and so is each document of a packed sequence. */
    SIFR_SEGMENTS,
    SIFR_TARGETS, /* FP32 numbers that a head reads beside labels: sifr_targets */
    SIFR_INPUTS
} sifr_input;
/* Not for SIFR_TARGETS. */
SIFR_API sifr_value sifr_input_value(sifr_model *model, sifr_input input);
/* `columns` targets for each token. They are read in rows that have a label, whatever it is. */
SIFR_API sifr_value sifr_targets(sifr_model *model, int64_t columns);

/* The same for the inputs that most models read. */
SIFR_API sifr_value sifr_tokens(sifr_model *model);
SIFR_API sifr_value sifr_positions(sifr_model *model);
SIFR_API sifr_value sifr_labels(sifr_model *model);

/* Rows of `table` (words x columns) chosen by `ids`, an input of whole numbers: id i is row
 * first + i. */
typedef struct sifr_embedding_args {
    sifr_value ids;
    sifr_weight table;
    int64_t first; /* RoBERTa's positions begin behind the padding's row */
    /* torch.nn.Embedding's padding_idx: the row `padding` trains nothing, and is 0 in a fresh
     * table. A padding outside the table is none. */
    bool padded;
    int64_t padding;
} sifr_embedding_args;
SIFR_API sifr_value sifr_embedding(sifr_model *model, sifr_embedding_args args);

/* All rows of `table`, in order: a value with as many rows as the table, whatever the number of
 * tokens. What is made of it has as many, too: ops that work row by row take such values (linear,
 * norms, activations, dropout, sums of two of them), and attention those that its arguments name.
 */
SIFR_API sifr_value sifr_rows(sifr_model *model, sifr_weight table);

/* x w^T + bias; w: out x in; bias: vector of `out`, or SIFR_NO_WEIGHT. */
SIFR_API sifr_value sifr_linear(sifr_model *model, sifr_value x, sifr_weight w, sifr_weight bias);
/* x w + bias; w: in x out (GPT-2's Conv1D). */
SIFR_API sifr_value sifr_conv1d(sifr_model *model, sifr_value x, sifr_weight w, sifr_weight bias);

/* Norms of each row. scale, bias: vectors of x's columns, or SIFR_NO_WEIGHT; the root-mean-square
 * norm (Zhang and Sennrich 2019) has no bias, nor has a norm without scale. */
typedef struct sifr_norm_args {
    sifr_value x;
    sifr_weight scale, bias;
    double epsilon;
    bool plus_one; /* multiplies by 1 + scale, whose initial value is 0 then */
    /* Each row is so many groups of columns (heads), and each is normalised by itself; scale and
     * bias have the columns of one head and serve all, or they are matrices with a row for each. 0
     * or 1: the whole row. */
    int64_t heads;
} sifr_norm_args;
SIFR_API sifr_value sifr_layer_norm(sifr_model *model, sifr_norm_args args);
SIFR_API sifr_value sifr_rms_norm(sifr_model *model, sifr_norm_args args);

/* Columns first … first + columns - 1 of x, without a copy. */
SIFR_API sifr_value sifr_slice(sifr_model *model, sifr_value x, int64_t first, int64_t columns);

/* Rotary position embedding of each head of x. */
typedef struct sifr_rope_args {
    sifr_value x;
    int64_t head_dim;
    int64_t rotary_dim; /* so many elements of a head turn, the first ones; 0: all */
    bool interleaved;   /* neighbours turn together, else element i and i + rotary_dim / 2 */
    /* [rotary_dim / 2] angles by which one position turns each pair (RoFormer, Su et al. 2021);
     * copied by the call */
    const double *frequencies;
    double scale; /* of cosines and sines (yarn's attention factor); 0: 1 */
} sifr_rope_args;
SIFR_API sifr_value sifr_rope(sifr_model *model, sifr_rope_args args);

/* The columns of x are `groups` groups of `parts` parts each (the q, k and v of each head); y has
 * part 0 of all groups first, then part 1 of all, and so on. */
SIFR_API sifr_value sifr_split_qkv(sifr_model *model, sifr_value x, int64_t groups, int64_t parts);

/* The columns of `count` values, 2 to 6, one behind the other. */
SIFR_API sifr_value sifr_join(sifr_model *model, const sifr_value *values, int64_t count);

/* Each row beside its neighbours in the sequence: columns size c ... size c + size - 1 of a row are
 * column c of the rows from size / 2 before it to size / 2 behind it, 0 beyond the ends. `size` is
 * odd, 31 at most. sifr_linear of this is a convolution over tokens: torch.nn.Conv1d with zero
 * padding, its weight (out x in x size) taken as out x (in size). Not for models that generate. */
typedef struct sifr_unfold_args {
    sifr_value x;
    int64_t size;
    sifr_value segments; /* an input, or none: rows of another segment count as 0, too */
} sifr_unfold_args;
SIFR_API sifr_value sifr_unfold(sifr_model *model, sifr_unfold_args args);

/* Each column convolved with its own last tokens: y[t, c] = bias[c] + sum over j of weight[c, j]
 * x[t - size + 1 + j, c], without terms before the start of the sequence: torch.nn.Conv1d with as
 * many groups as columns, and size - 1 zeros before. weight: sifr_weight_kernel of columns x 1 x
 * size, 2 to 8. In generation it keeps the last size - 1 tokens of a sequence. */
typedef struct sifr_short_conv_args {
    sifr_value x;
    sifr_weight weight, bias; /* bias: a vector of x's columns; may be left out */
    sifr_value segments;      /* an input, or none: terms of another segment are left out, too */
} sifr_short_conv_args;
SIFR_API sifr_value sifr_short_conv(sifr_model *model, sifr_short_conv_args args);

/* The gated delta rule of linear attention (Yang, Kautz and Hatamizadeh 2024, "Gated Delta
 * Networks", equation 10), inside each sequence. Each value head has a state S, key_dim x
 * value_dim, which is 0 before the first token. For each token, with q and k divided by their
 * lengths and q by the square root of key_dim: S <- e^g S; u = beta (v - S^T k); S <- S + k u^T; y
 * = S^T q, where g = -exp(rate) softplus(time + bias) and beta = sigmoid(share). All of it is in
 * fp32 whatever the type of the values. In generation it keeps the states. */
typedef struct sifr_delta_args {
    sifr_value q, k;                /* key_heads x key_dim columns each */
    sifr_value v;                   /* value_heads x value_dim columns, as y has them */
    sifr_value time, share;         /* value_heads columns each */
    sifr_weight rate, bias;         /* vectors of value_heads: A_log and dt_bias in files */
    int64_t key_heads, value_heads; /* value head h reads key head h / (value_heads / key_heads) */
    sifr_value segments;            /* an input, or none: the state is 0 before each segment, too */
} sifr_delta_args;
SIFR_API sifr_value sifr_delta(sifr_model *model, sifr_delta_args args);

/* Attention inside each sequence, causal unless bidirectional. */
typedef struct sifr_attention_args {
    sifr_value q;            /* heads x head_dim columns */
    sifr_value k, v;         /* kv_heads x head_dim columns each */
    int64_t heads, kv_heads; /* fewer kv heads: grouped-query attention */
    double dropout;          /* of the attention probabilities, in [0, 1) */
    double scale;            /* of the scores; 0: 1/sqrt(head_dim) */
    double softcap;          /* c: scores s become c tanh(s / c) before the mask; 0: they stay */
    int64_t window;          /* a query sees itself and window - 1 keys before it; 0: all */
    bool bidirectional;      /* it sees as many keys after it: such a model does not generate */
    /* An input of whole numbers, or none: a query sees only keys with its own number (0 for text
     * and 1 for padding, or the number of a document). A generated sequence counts as one segment.
     */
    sifr_value segments;
    /* Disentangled attention (DeBERTa, He et al. 2021): either or both of two tables, values made
     * from sifr_rows with 2 n rows and heads x head_dim columns. Scores are then
     * scale (q_i k_j + q_i position_keys[r] + k_j position_queries[r]), where r is i - j + n
     * clamped to 0 ... 2 n - 1. With `buckets` (0: none), distances above half of them are
     * logarithmic: a distance of most_distance - 1 has the last bucket. Only for bidirectional
     * attention with as many kv_heads as heads. */
    sifr_value position_keys, position_queries;
    int64_t buckets, most_distance;
    /* A bias by distance (ALiBi, Press, Smith and Lewis 2022): query i adds alibi x slope x (j - i)
     * to its score of key j, behind the scale; the paper's slopes of so many heads. 0: none. Only
     * for causal attention without a soft cap. */
    double alibi;
} sifr_attention_args;
SIFR_API sifr_value sifr_attention(sifr_model *model, sifr_attention_args args);

SIFR_API sifr_value sifr_gelu(sifr_model *model, sifr_value x, bool exact);
SIFR_API sifr_value sifr_tanh(sifr_model *model, sifr_value x);
/* max(x, 0), or its square */
SIFR_API sifr_value sifr_relu(sifr_model *model, sifr_value x, bool squared);
/* x sigmoid(slope x): SiLU has slope 1, QuickGELU 1.702 */
SIFR_API sifr_value sifr_swish(sifr_model *model, sifr_value x, double slope);
/* x within -limit ... limit; the gradient of what lies outside is 0 */
SIFR_API sifr_value sifr_clip(sifr_model *model, sifr_value x, double limit);
/* xIELU (Huang and Schlag 2024, arXiv 2411.13010), with two trained numbers p and n: a_p x^2 + beta
 * x where x > 0, else a_n (e^min(x, epsilon) - 1 - x) + beta x, where a_p = softplus(p) and a_n =
 * beta
 * + softplus(n). */
typedef struct sifr_xielu_args {
    sifr_value x;
    sifr_weight positive, negative; /* p and n: vectors of one element */
    double beta;                    /* the slope at 0: 0.5 in the paper */
    double epsilon;                 /* 0 or a little below; in the type of the activations */
} sifr_xielu_args;
SIFR_API sifr_value sifr_xielu(sifr_model *model, sifr_xielu_args args);
/* silu(gate) * up */
SIFR_API sifr_value sifr_silu_gate(sifr_model *model, sifr_value gate, sifr_value up);
/* sigmoid(gate) * up */
SIFR_API sifr_value sifr_sigmoid_gate(sifr_model *model, sifr_value gate, sifr_value up);
/* gelu(gate) * up; exact: by erf, else by tanh */
SIFR_API sifr_value sifr_gelu_gate(sifr_model *model, sifr_value gate, sifr_value up, bool exact);
SIFR_API sifr_value sifr_add(sifr_model *model, sifr_value a, sifr_value b);
SIFR_API sifr_value sifr_multiply(sifr_model *model, sifr_value a, sifr_value b);
/* factor * x. */
typedef struct sifr_scale_args {
    sifr_value x;
    double factor;
    bool round_factor; /* to the type of the activations, before the product */
} sifr_scale_args;
SIFR_API sifr_value sifr_scale(sifr_model *model, sifr_scale_args args);
/* factor * x, where `factor` is a vector of one element that files have and nothing trains, like a
 * buffer of PyTorch's: it is frozen from here on. */
SIFR_API sifr_value sifr_scale_by(sifr_model *model, sifr_value x, sifr_weight factor);
SIFR_API sifr_value sifr_dropout(sifr_model *model, sifr_value x, double probability);

/* Ends a model: logits l = scale (x weight^T + bias), or softcap tanh(l / softcap), and the cross
 * entropy of the labels. A model has exactly one, and nothing may follow it. */
typedef struct sifr_head_args {
    sifr_value x;
    sifr_weight weight; /* words x columns of x; may be the embedding's table (a tied head) */
    sifr_weight bias;   /* vector of words, of this unit; may be left out */
    double scale;       /* 0: 1 */
    double softcap;     /* 0: none */
} sifr_head_args;
SIFR_API void sifr_head_loss(sifr_model *model, sifr_head_args args);

/* Ends a model in place of sifr_head_loss: logits l = x weight^T + bias, and as the loss of a row
 * the mean over its columns of (l - target)^2, or of the binary cross entropy of l and a target in
 * [0, 1]. A row whose label is negative has no loss, and its targets are not read. */
typedef struct sifr_head_targets_args {
    sifr_value x;
    sifr_value targets; /* sifr_targets, as many as the weight has rows */
    sifr_weight weight; /* columns x columns of x */
    sifr_weight bias;   /* vector of columns, of this unit; may be left out */
} sifr_head_targets_args;
SIFR_API void sifr_head_regression(sifr_model *model, sifr_head_targets_args args);
SIFR_API void sifr_head_multilabel(sifr_model *model, sifr_head_targets_args args);

/* Completes the description and reports the first mistake in the calls before it. */
SIFR_API sifr_status sifr_model_finish(sifr_model *model, sifr_error *error) SIFR_MUST_CHECK;

/* Weights whose names match a shell glob ("model.layers.[01].*") are no longer trained: no gradient
 * is computed for them and nothing changes them. Call it before an engine is created from the
 * model. SIFR_USAGE if no name matches. */
SIFR_API sifr_status sifr_model_freeze(sifr_model *model, const char *pattern,
                                       sifr_error *error) SIFR_MUST_CHECK;

SIFR_API int64_t
sifr_model_parameters(const sifr_model *model); /* elements; a tied weight counts once */
SIFR_API int64_t
sifr_model_trained(const sifr_model *model); /* those of them that are not frozen */

#ifdef __cplusplus
}
#endif
#endif
