/* What a checkpoint keeps of a run, to tell whether another one can go on with it. */
#ifndef TRAIN_FINGERPRINT_H
#define TRAIN_FINGERPRINT_H

#include <jansson.h>

#include "config/config.h"
#include "engine/handle.h"
#include "train/data/data.h"

/* New objects that the caller owns; NULL when memory ran out. */

/* What must be the same: the weights' names and shapes, the data, and how they are cut. */
json_t *train_fingerprint_agree(const sifr_config *config, const sifr_model *model,
                                const train_data *data, int64_t length);

/* What may change, and changes the bits: optimizer, schedule, types, machine. */
json_t *train_fingerprint_notes(const sifr_config *config, const sifr_engine *engine);

#endif
