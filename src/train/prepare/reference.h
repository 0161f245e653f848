/* Scores that a run needs beside the labels of its data: the log-probabilities of a reference, for
 * preferences, or the distributions of another model, for distillation. */
#ifndef TRAIN_REFERENCE_H
#define TRAIN_REFERENCE_H

#include "train/run.h"

/* Opens them, once the data are open and the engine has its first weights or those of a checkpoint.
 * If no file is given for a reference, it is computed once, from the engine's weights, and kept in
 * the output for a resumed run. All ranks call it. */
sifr_status train_use_scores(train_state *t, sifr_error *error) SIFR_MUST_CHECK;

#endif
