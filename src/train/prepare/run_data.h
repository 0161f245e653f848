/* The data of a run, and the number of steps that they make. */
#ifndef TRAIN_RUN_DATA_H
#define TRAIN_RUN_DATA_H

#include "train/run.h"

/* Opens the data into t->data, and those that the run is evaluated on, if any, into t->held_out.
 * Text is tokenised into stores in the folder `cache`, or found there: the first rank calls it
 * before the others. `progress` may be NULL. SIFR_USAGE for rows that the objective does not learn
 * from. */
sifr_status train_open_stores(train_state *t, const char *cache, const base_progress *progress,
                              sifr_error *error) SIFR_MUST_CHECK;

/* This rank's micro batches of step `step`, from 0, by a step's settings. */
void train_fetch(const train_state *t, const plan_settings *settings, int64_t step,
                 const data_rows *rows);

/* Sets t->epochs: batches of rows end with their epoch, those of text do not. A run that goes on
 * keeps the batches that it began with. All ranks call it, between the two others. */
sifr_status train_choose_batches(train_state *t, sifr_error *error) SIFR_MUST_CHECK;

/* Sets t->total_steps, from max_steps or epochs, and says how much data there is and what is left
 * of it. SIFR_FAILED where there are too few for a step. */
sifr_status train_count_steps(train_state *t, sifr_error *error) SIFR_MUST_CHECK;

#endif
