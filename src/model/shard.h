/* A tensor rank's part of a model: the same units and weights, of which some are cut, with the
 * values and nodes that compute with them. The rules are in the op table (model_layout), so no
 * architecture is named here. */
#ifndef MODEL_SHARD_H
#define MODEL_SHARD_H

#include "model/description.h"

/* How the weights of a node are cut among tensor ranks. */
typedef enum model_product_cut {
    MODEL_CUT_NONE,     /* it has none, or each rank computes all of it with them */
    MODEL_CUT_OUTPUTS,  /* of a product */
    MODEL_CUT_INPUTS,   /* of a product */
    MODEL_CUT_ROWS,     /* each of some columns of a value (MODEL_SHARED_ROWS) */
    MODEL_CUT_GRADIENT, /* each rank has the whole of them, and makes a part of their gradient */
    MODEL_CUT_WORDS     /* each of some words (MODEL_LAYOUT_WORDS) */
} model_product_cut;

/* Runs of columns, of which each rank has an equal part: a value's slices, or all of it. */
typedef struct model_runs {
    int32_t count;
    int64_t end[MODEL_BLOCKS]; /* where each ends, from the first on */
} model_runs;

typedef struct model_layouts {
    uint8_t *products; /* by node: model_product_cut, of its weights */
    int64_t *blocks;   /* by value: the blocks that ranks divide its columns in; 0: it is whole */
    bool *parts;       /* by value: whether it is whole, and each rank makes a part of its gradient,
                          inside of an adapter whose second factor's outputs are cut */
    int32_t copies;    /* ranks that have the same keys and values, where there are more of them
                          than kv heads; else 1 */
    int32_t cut_count; /* products that are cut */
    int32_t kept_count; /* matrices of products that are not */
} model_layouts;

/* Cuts all that `ranks` tensor ranks can divide; what cannot be, or is read by an op that needs it
 * whole, each rank computes whole. exact: so is what they cannot divide evenly, and what would make
 * each rank a part of a gradient, which one rank adds up in another order. */
sifr_status model_find_layouts(const sifr_model *model, int32_t ranks, bool exact,
                               model_layouts *out, sifr_error *error) SIFR_MUST_CHECK;
void model_layouts_free(model_layouts *layouts);

/* The columns of the output of a product whose outputs are cut: each run is divided by itself.
 * False: they cannot be divided. */
bool model_output_runs(const sifr_model *model, const model_node *node, model_runs *out);

/* What the rank at `place` has of `blocks` blocks. */
model_share model_share_of(int64_t blocks, int32_t ranks, int32_t place);

/* The greatest number that divides both; of 0 and another, the other. */
int64_t model_common_divisor(int64_t a, int64_t b);

/* Whether there are slices of a value. */
bool model_is_sliced(const sifr_model *model, int32_t value);

typedef struct model_shard_args {
    int32_t ranks, place;
    int32_t exact; /* as many pieces as decide the bits, a multiple of `ranks`, which may be 1 then;
                      or 0 */
    sifr_vocab_parallel words;
} model_shard_args;

/* The part of the rank at `place`, of a finished model; free it with sifr_model_free. SIFR_USAGE if
 * nothing can be cut, if `exact` ranks cannot divide what two can, if words are to be cut and
 * cannot be, or if the model has what tensor ranks do not support. */
sifr_status model_shard_by(const sifr_model *model, model_shard_args args, sifr_model **out,
                           sifr_error *error) SIFR_MUST_CHECK;

/* The same with whole words. */
sifr_status model_shard(const sifr_model *model, int32_t ranks, int32_t place, int32_t exact,
                        sifr_model **out, sifr_error *error) SIFR_MUST_CHECK;

/* What a weight of a rank's part has on the rank at another place. */
model_weight model_weight_at(const sifr_model *part, size_t weight, int32_t place);

#endif
