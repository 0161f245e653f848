/* What Gemma 1 to 3 have in common. */
#ifndef MODEL_GEMMA_H
#define MODEL_GEMMA_H

#include "model/architectures/decoder.h"

/* Fields whose defaults are the same; the others stay. */
void gemma_defaults(model_config *out);
/* `activation`: the name of its key. */
sifr_status gemma_read(const model_reader *r, const char *activation,
                       model_config *out) SIFR_MUST_CHECK;

#endif
