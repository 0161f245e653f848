/* A tensor rank's part of a model whose residual stream is cut by rows, a run of a micro batch's
 * tokens for each rank (Megatron's sequence parallelism, Korthikanti et al. 2022, arXiv 2205.05198,
 * section 4.2.2): norms, dropout and sums between a product whose inputs are cut and the next whose
 * outputs are. The sum over ranks behind the one becomes a reduction to the rank's rows, and a
 * gather comes before the other. */
#ifndef MODEL_SHARD_ROWS_H
#define MODEL_SHARD_ROWS_H

#include "model/description.h"

/* Cuts the rows of `part`, which model_shard made of `logical`; free it with sifr_model_free. */
sifr_status model_cut_rows(const sifr_model *logical, const sifr_model *part, sifr_model **out,
                           sifr_error *error) SIFR_MUST_CHECK;

#endif
