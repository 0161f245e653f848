/* What of a model its weights do not show: the numbers of its config.json. */
#ifndef TRAIN_OTHER_MODEL_H
#define TRAIN_OTHER_MODEL_H

#include "base/errors.h"

/* Warns of each key of config.json that the folder `model` has otherwise than `output`, which got
 * that of the model with which its run began: an epsilon or a dropout, say. A folder without one is
 * equal to any. */
void train_warn_other_model(const char *output, const char *model, const sifr_log *log);

#endif
