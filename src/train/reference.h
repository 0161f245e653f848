/* What data are trained on beside their labels: log-probabilities of a reference for preferences,
 * another model's distributions. */
#ifndef TRAIN_REFERENCE_H
#define TRAIN_REFERENCE_H

#include "train/run.h"

/* Once the data are open and the engine has its first weights, or those of a checkpoint. Where
 * preferences have no file of their reference, the engine's weights give it, once: the file is kept
 * in the output for a resumed run. All ranks call it. */
sifr_status train_use_scores(train_state *t, sifr_error *error) SIFR_MUST_CHECK;

#endif
