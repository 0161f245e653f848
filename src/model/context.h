/* A context rank's part of a model: the same weights, on some of each sequence's tokens. All works
 * on rows of these alone but attention. Before and behind it ranks exchange, and each gets whole
 * sequences of some heads (DeepSpeed-Ulysses, arXiv 2309.14509, section 3); or each gathers keys
 * and values of whole sequences, and computes its own queries of all heads (arXiv 2407.21783,
 * section 3.3.2); or both: u neighbours exchange, and each then has the queries that all of them
 * have, of its heads, and gathers the keys and values of these heads. Which ops can is in the op
 * table (model_contexts), so no architecture is named here. */
#ifndef MODEL_CONTEXT_H
#define MODEL_CONTEXT_H

#include "model/description.h"

/* What decides a part: how many ranks there are, and of a micro batch how many sequences. */
typedef struct model_context_args {
    int32_t ranks;
    sifr_context_kind kind;
    int64_t sequences;
} model_context_args;

/* Neighbours that divide the heads of attention among them, of so many context ranks: u. `a`: of a
 * node of such a part. */
static inline int32_t model_context_heads_of(int32_t ranks, const device_attention_attributes *a) {
    return a->contexts > 0 ? ranks / a->contexts : ranks;
}

/* The part of each of the ranks, of a finished model or of a tensor rank's part of one; free it
 * with sifr_model_free. SIFR_USAGE where the heads would have to divide among the ranks and do not,
 * or an op does not work so. */
sifr_status model_cut_contexts(const sifr_model *model, const model_context_args *args,
                               sifr_model **out, sifr_error *error) SIFR_MUST_CHECK;

#endif
