/* What Gemma 1 to 3 have in common. */
#ifndef MODEL_GEMMA_H
#define MODEL_GEMMA_H

#include "model/architectures/decoder.h"

/* Fields whose defaults are the same; the others stay. */
void gemma_defaults(model_config *out);
/* The keys that decoder_read has not, after it. `activation`: the name of its key. */
sifr_status gemma_read(const model_reader *r, const char *activation,
                       model_config *out) SIFR_MUST_CHECK;

/* query_pre_attn_scalar: what scores are divided by the root of. */
sifr_status gemma_read_scores(const model_reader *r, model_config *out) SIFR_MUST_CHECK;
/* A soft cap; null: none. */
sifr_status gemma_read_cap(const model_reader *r, const char *key, double fallback,
                           double *out) SIFR_MUST_CHECK;
/* The block of Gemma 2 and 3, with norms on both sides of attention and MLP. */
sifr_value gemma_block(const decoder *d, sifr_value x, decoder_block attention);

#endif
