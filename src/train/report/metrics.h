/* OUTPUT/metrics.jsonl and metrics.csv: one record a line, each flushed. */
#ifndef TRAIN_METRICS_H
#define TRAIN_METRICS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/errors.h"
#include "train/objective/objectives.h"
#include "train/report/history.h"

typedef struct train_metrics {
    FILE *jsonl, *csv;
    int64_t jsonl_bytes, csv_bytes; /* of whole records in the files */
    train_history history;          /* of the run, including what is before a resume */
    json_t *pending;                /* records that are not in the files; NULL: closed */
    char *jsonl_path, *csv_path;
    const train_objective *objective; /* whose columns the CSV has */
    bool behind;                      /* the last write has failed */
} train_metrics;

/* Removes incomplete lines and records of steps after `step`, which a run may have written after
 * its last checkpoint. With step 0 both files start empty. The CSV has the
 * columns of `objective` too (NULL: common ones alone). */
sifr_status train_metrics_open(train_metrics *metrics, const char *output, int64_t step,
                               const train_objective *objective, sifr_error *error) SIFR_MUST_CHECK;
void train_metrics_close(train_metrics *metrics); /* harmless on a zeroed one */

/* Takes ownership of `record`, an object with "step"; the columns of the CSV are a fixed list of
 * keys. SIFR_FAILED if it cannot be written; it is written with the next record then. */
sifr_status train_metrics_add(train_metrics *metrics, json_t *record,
                              sifr_error *error) SIFR_MUST_CHECK;

#endif
