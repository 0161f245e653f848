/* What a checkpoint must have, and whether the ranges of a manifest are a partition of it. */
#ifndef CHECKPOINT_COVER_H
#define CHECKPOINT_COVER_H

#include "checkpoint/manifest.h"

/* Whether a checkpoint of a run with this optimizer (NULL: any) holds this part of a weight. It
 * holds no part of weights of a base, and no moments of other frozen weights. */
bool checkpoint_has_part(const sifr_model *model, const optim_row *optimizer, size_t weight,
                         engine_part part);

/* Checks ranges, sorted by weight, part, block and place, against the model: each element of each
 * part is in exactly one of them. For all parts of `optimizer`, or NULL: for master weights alone.
 * `any`: the model does not say which weights were trained, and the ranges do. SIFR_FAILED names
 * the weight; `where` is the manifest. */
sifr_status checkpoint_check_cover(const checkpoint_range *ranges, size_t count,
                                   const sifr_model *model, const optim_row *optimizer, bool any,
                                   const char *where, sifr_error *error) SIFR_MUST_CHECK;

#endif
