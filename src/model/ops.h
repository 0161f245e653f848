/* The op table: the facts about an op that planner, engine and pricer use. Each op has a file in
 * ops/ with its row and its call of the public builder; no other code names an op.
 */
#ifndef MODEL_OPS_H
#define MODEL_OPS_H

#include <stddef.h>

#include "device/call.h"
#include "sifr/model.h"

struct model_node;

enum {
    MODEL_KEEP_X0 = 1,
    MODEL_KEEP_X1 = 2,
    MODEL_KEEP_X2 = 4,
    MODEL_KEEP_X3 = 8, /* X0 << i is of input i */
    MODEL_KEEP_X4 = 16,
    MODEL_KEEP_X5 = 32,
    MODEL_KEEP_W0 = 64,
    MODEL_KEEP_W1 = 128,
    MODEL_KEEP_Y = 256,
    MODEL_KEEP_SAVED = 512
};

/* The facts about a call that are known only when the step is planned. */
typedef struct model_extent {
    int64_t sequences, length; /* of a micro batch; of a cache, length is what it has room for; of a
                                  value with halos, a run of rows with those before it */
    int64_t whole;             /* rows of the micro batch where a call has a tile of them; else 0 */
    int32_t contexts, context; /* context ranks, and this one's place among them */
    bool training;
} model_extent;

/* What a head reads: the next `columns` targets of a token are numbers from `low` to `high`. */
typedef struct model_target_rule {
    int64_t columns;
    double low, high;
    bool whole;
    const char *what; /* "an id of the vocabulary": in messages */
} model_target_rule;
enum { MODEL_TARGET_RULES = 2 };

/* A logarithm of 1 that was rounded may be above 0. */
#define MODEL_MOST_LOG_PROBABILITY 1e-3

/* What an op does on a tensor rank, which may have some columns of each value only (shard.h). */
typedef enum model_layout {
    MODEL_LAYOUT_WHOLE, /* it needs whole values, and makes one */
    MODEL_LAYOUT_PARTS, /* of a rank's columns of its inputs it makes the rank's of its output */
    /* Its matrix is cut: by outputs where its input is whole, which makes a rank's columns; by
     * inputs where it gets a rank's columns, which makes a part of a sum. */
    MODEL_LAYOUT_PRODUCT,
    /* Of whole values, too; the rows of its w0, and its w1, are words, of which a rank may have
     * some: a table of them makes a part of a sum, and a head a part of its input's gradient. */
    MODEL_LAYOUT_WORDS,
    /* It reads an adapter's matrix or factors, w0, beside the product with them, and goes with how
     * that is cut. Where it is by inputs, the squares of norms are sums over ranks. */
    MODEL_LAYOUT_FOLLOWS
} model_layout;

/* What a tensor rank has of a value of `blocks` equal blocks of columns: those from `first` on, and
 * room for as many as the rank that has most; zeros lie in what is left. Where there are fewer
 * blocks than ranks, neighbours have the same one. */
typedef struct model_share {
    int32_t ranks;
    int64_t blocks, first, count, room;
} model_share;

/* What a rank has of the weights of an op that makes a rank's columns. */
typedef enum model_shared {
    MODEL_SHARED_NONE,  /* it has none */
    MODEL_SHARED_WHOLE, /* all ranks' columns go through the same: its gradient is a sum over ranks
                         */
    MODEL_SHARED_ROWS   /* a row is of some columns: each rank has some of the rows */
} model_shared;

/* What an op does on a context rank, which has a run of each sequence's tokens (context.h). An op
 * that is by_row works on these. */
typedef enum model_contexts {
    MODEL_CONTEXTS_NONE, /* it is not known to */
    MODEL_CONTEXTS_ROWS, /* so does this one, though it is never tiled */
    MODEL_CONTEXTS_HALO, /* a row takes some rows before it, w0's columns but one */
    MODEL_CONTEXTS_HEADS /* it takes whole sequences, and heads apart: x0, x1, x2, y have heads */
} model_contexts;

/* Of context ranks: runs of rows with all columns become all rows of a run of columns, or back. */
typedef enum model_exchange {
    MODEL_EXCHANGE_NONE,
    MODEL_EXCHANGE_TO_HEADS,
    MODEL_EXCHANGE_TO_ROWS,
    MODEL_EXCHANGE_GATHER,  /* runs of rows become all rows, of all columns or of a run of them;
                               gradients are added up on the way back */
    MODEL_EXCHANGE_TO_HALO, /* before each run of rows come those of the tokens before it */
    MODEL_EXCHANGE_OFF_HALO /* and go */
} model_exchange;

/* Of tensor ranks whose residual stream is cut by rows (shard_rows.h), and no kernel: how x0
 * becomes y, "whole" with all rows or "cut" with the rank's own. */
typedef enum model_row_move {
    MODEL_ROWS_STAY,
    MODEL_ROWS_SUM,    /* of ranks' parts their sum, cut; back: whole, by a gather */
    MODEL_ROWS_ENTER,  /* whole, by a gather; back: the sum of ranks' parts, cut */
    MODEL_ROWS_GATHER, /* whole, by a gather; back: the rank's own rows */
    MODEL_ROWS_TAKE    /* the rank's own rows; back: whole, by a gather */
} model_row_move;

/* A row. It has a name and both kernels; what else it leaves out it does not do or have. */
typedef struct model_op {
    const char *name;
    device_kernel forward, backward; /* DEVICE_KERNELS: none */
    /* In generation `cached` runs in place of forward. With `caches` it keeps x1 and x2 of all
     * tokens in caches, its w0 and w1. With `state` it keeps, for each sequence, values in saved0,
     * so many rows and columns, whatever the sequence's length: they cannot go back to an earlier
     * token. They have the activations' type or, `fp32_state`, FP32. Input `positions` of that call
     * are positions, and inputs behind it are left out. */
    bool caches, fp32_state;
    void (*state)(const struct sifr_model *model, const struct model_node *node, int64_t *rows,
                  int64_t *columns);
    int positions;
    device_kernel cached;
    device_kernel logits;     /* with makes_loss: where the logits are asked for; x0, w0, w1 */
    device_kernel statistics; /* with MODEL_LAYOUT_WORDS: comes before both where words are cut, and
                                 the sum of all ranks' y is x3 of both */
    int keep;                 /* what backward reads beside dy */
    bool x_for_weights;       /* x0 of them for the gradients of weights alone */
    int gradients;            /* bit i: input i has a gradient */
    bool in_place;            /* y may take x0's place */
    bool backward_in_place;   /* dx0 may take dy's place */
    bool accumulates;         /* backward can add to dx */
    bool splits;              /* backward can make dx and dw in calls of their own */
    bool makes_all;           /* backward makes dx of all inputs with a gradient, wanted or not */
    /* A row of y follows from the same row of its inputs, and of dx from that of dy, whatever rows
     * are beside it: a tile of rows can go through alone. dw is summed by chunks of tokens. An op
     * that does not say so is never tiled. */
    bool by_row;
    bool shares_gradient; /* dy is the gradient of each input: no backward kernel runs */
    bool makes_loss;      /* y is the loss: it ends a model, has no dy, and backward makes y too */
    bool counts_elements; /* results depend on where in the micro batch y begins (dropout) */
    bool detached;        /* no gradient goes back, not even to weights */
    bool any_rows;        /* its inputs may have other rows than one for each token */
    bool makes_rows;      /* y has the rows of w0, not one for each token */
    model_layout layout;
    /* MODEL_LAYOUT_PARTS: in how many equal blocks of columns its values can be divided, 0: not at
     * all; of the inputs with a bit of common_inputs (common: these are asked for), each of whose
     * blocks serves several of the others, if there are fewer. And makes of a node that of a rank's
     * part. NULL: any number, if there are no slices but of what a product makes, and nothing in it
     * depends on its columns. */
    int64_t (*blocks)(const sifr_model *model, const struct model_node *node, bool common);
    int common_inputs;
    void (*divide)(const sifr_model *model, struct model_node *node, const model_share *share);
    /* MODEL_LAYOUT_PARTS: of its weights; NULL: a node that has some is not divided. */
    model_shared (*shares)(const sifr_model *model, const struct model_node *node);
    /* Of tensor ranks, and no kernel: y is the sum of all ranks' x0; the gradient of x0 is the sum
     * of all ranks' dy. Otherwise y is x0, and the gradient dy. */
    bool sums, sums_gradient;
    model_row_move moves;
    /* Of a row of weights: makes, in place of their gradients, sums over runs of rows, which
     * DEVICE_NORM_FOLD adds up to those; 0: none does. Takes `saved` as x1. */
    device_kernel run_sums;
    bool
        joins; /* of a node that is joined, a call with x1, x2 and w0 alone comes before; it leaves
                  a part at saved0, and the sum of all tensor ranks' is x4 of the node's own call */
    model_contexts contexts;
    /* Of context ranks, and no kernel: y is x0 exchanged, and the gradient of x0 is dy back. */
    model_exchange exchanges;
    bool undecayed; /* the Hugging Face Trainer does not decay its weights */
    /* With makes_loss, of `columns` targets and a weight of `classes` rows: its rules, which are
     * together for all columns; returns how many. NULL: any finite numbers. */
    int (*targets)(const struct model_node *node, int64_t columns, int64_t classes,
                   model_target_rule rules[MODEL_TARGET_RULES]);
    int constant_rows; /* bit i: input i has a number of rows of its own */
    int row_numbers;   /* bit i: input i holds numbers of rows of w0 */
    int64_t (*first_row)(const device_attributes *attributes); /* of number 0; NULL: row 0 */
    /* Fills in values that only the plan knows; NULL: none. */
    void (*complete)(device_attributes *attributes, const model_extent *extent);
    /* FP32 values kept per call, as rows x columns; NULL: none */
    void (*saved)(const struct model_node *node, int64_t tokens, int64_t *rows, int64_t *columns);
    /* Floating-point operations of the products of a forward call, from its shapes alone; NULL: it
     * has no products. `full`: pairs of tokens that a causal mask leaves out count as well. */
    double (*operations)(const device_call *call, bool full);
    /* The operations of a backward call, including its kernel's recomputation, as a multiple of
     * that. */
    double backward_factor;
    /* Bytes of operands that a call leaves alone; NULL: it reads or writes all of them once. */
    double (*untouched)(const device_call *call);
} model_op;

extern const model_op model_op_embedding, model_op_linear, model_op_layer_norm, model_op_rms_norm,
    model_op_rope, model_op_split_qkv, model_op_rows, model_op_constant_rows, model_op_magnitude,
    model_op_unfold, model_op_short_conv, model_op_attention, model_op_gelu, model_op_tanh,
    model_op_relu, model_op_swish, model_op_clip, model_op_xielu, model_op_join, model_op_silu_gate,
    model_op_gelu_gate, model_op_add, model_op_multiply, model_op_scale, model_op_scale_by,
    model_op_dropout, model_op_head_loss, model_op_head_regression, model_op_head_multilabel,
    model_op_tensor_sum, model_op_tensor_entry, model_op_rows_sum, model_op_rows_enter,
    model_op_rows_gather, model_op_rows_take, model_op_context_heads, model_op_context_rows,
    model_op_context_keys, model_op_context_halo, model_op_context_inner, model_op_delta,
    model_op_sigmoid_gate;

/* The rules of the model's targets, `columns` for each token; 0: any finite numbers. */
int model_target_rules(const sifr_model *model, int64_t columns,
                       model_target_rule rules[MODEL_TARGET_RULES]);

/* Whether y is made by a gather alone, so that its whole rows need not be kept. */
static inline bool model_gathers_rows(const model_op *op) {
    return op->moves == MODEL_ROWS_ENTER || op->moves == MODEL_ROWS_GATHER;
}

/* Whether the op has a kernel of its own in generation; and whether a model has one that keeps
 * state. */
static inline bool model_is_cached(const model_op *op) {
    return op->caches || op->state;
}
bool model_keeps_state(const sifr_model *model);

/* operations of an op that is one product of x0 with w0. */
double model_product_operations(const device_call *call, bool full);

/* The same of a head. Where words are divided among ranks, an evaluation's losses follow from
 * statistics, which a call of their own has made: it has none. */
double model_head_operations(const device_call *call, bool full);

/* Of a matrix; 0 where the operand is not there. */
double model_matrix_bytes(const device_matrix *m);

/* What a call takes, forward or backward: operations of products, and bytes that it must read or
 * write at least once. A call that runs no op (a copy, a sum, an update) has no products. */
typedef struct model_cost {
    double operations, bytes;
} model_cost;
model_cost model_call_cost(const sifr_model *model, const device_call *call);

/* Floating-point operations a token in a training step, the field's own count: 6 x (parameters in
 * products) + 12 x layers x length x width (Kaplan et al. 2020; PaLM, app. B). That is three times
 * the forward operations of every op, full attention counted, and nothing computed again. */
double model_training_flops(const sifr_model *model, int64_t length);

#endif
