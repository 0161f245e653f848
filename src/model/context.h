/* A context rank's part of a model: the same weights, on a run of each sequence's tokens. All works
 * on rows of these alone but attention, before and behind which ranks exchange: each gets whole
 * sequences of some heads (DeepSpeed-Ulysses, arXiv 2309.14509, section 3). Which ops can is in the
 * op table (model_contexts), so no architecture is named here. */
#ifndef MODEL_CONTEXT_H
#define MODEL_CONTEXT_H

#include "model/description.h"

/* The part of each of `ranks` ranks, of a finished model or of a tensor rank's part of one; free it
 * with sifr_model_free. `sequences`: of a micro batch. SIFR_USAGE where the heads do not divide
 * among the ranks, or an op does not work so. */
sifr_status model_cut_contexts(const sifr_model *model, int32_t ranks, int64_t sequences,
                               sifr_model **out, sifr_error *error) SIFR_MUST_CHECK;

#endif
