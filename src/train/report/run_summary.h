/* What a run did, as JSON: what `sifr train --json` prints, and OUTPUT/summary.json. */
#ifndef TRAIN_RUN_SUMMARY_H
#define TRAIN_RUN_SUMMARY_H

#include "config/config.h"
#include "train/loop.h"

typedef enum train_end { TRAIN_RUNNING, TRAIN_DONE, TRAIN_STOPPED, TRAIN_FAILED } train_end;

/* `config`: as the run resolved it. `why`: of a run that failed; else NULL. *out is the caller's to
 * free. */
sifr_status train_summary_text(const sifr_config *config, const train_outcome *outcome,
                               train_end end, const char *why, char **out,
                               sifr_error *error) SIFR_MUST_CHECK;

/* Writes OUTPUT/summary.json, whole or not at all; a failure is a warning (log NULL: none). A run
 * writes it when its steps begin and when it is over, so that what a killed run leaves is not an
 * earlier one's. */
void train_summary_write(const sifr_config *config, const train_outcome *outcome, train_end end,
                         const char *why, const sifr_log *log);

#endif
