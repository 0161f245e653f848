/* OUTPUT/metrics.jsonl and metrics.csv: a record a line, flushed each. */
#ifndef TRAIN_METRICS_H
#define TRAIN_METRICS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/errors.h"

typedef struct train_metrics {
    FILE *jsonl, *csv;
    json_t *history; /* all records of the run, those before a resume included */
    char *jsonl_path, *csv_path;
    bool behind; /* the files lack records of the history */
} train_metrics;

/* Records of steps beyond `step` (of a run that was killed after its last checkpoint) and torn
 * lines are removed; with step 0 both files begin anew. */
sifr_status train_metrics_open(train_metrics *metrics, const char *output, int64_t step,
                               sifr_error *error) SIFR_MUST_CHECK;
void train_metrics_close(train_metrics *metrics); /* harmless on a zeroed one */

/* Takes `record`, an object with "step"; columns of the CSV are a fixed list of its keys.
 * SIFR_FAILED where it cannot be written: it stays in the history, and the next record writes all
 * that is missing. */
sifr_status train_metrics_add(train_metrics *metrics, json_t *record,
                              sifr_error *error) SIFR_MUST_CHECK;

/* The number, or null where JSON has none for it. */
json_t *train_metrics_number(double value);

#endif
