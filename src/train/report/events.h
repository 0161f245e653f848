/* A record as DeepSpeed's monitors get it: tags, values, and as x the samples trained on so far. */
#ifndef TRAIN_EVENTS_H
#define TRAIN_EVENTS_H

#include "train/report/record.h"

typedef struct train_event {
    char tag[96]; /* "Train/Samples/lr" */
    double value;
    bool whole;
} train_event;

enum { TRAIN_EVENTS = TRAIN_METRICS + TRAIN_MEASURES };

/* The metrics that have a new value with this record; returns their number. As there, lr and
 * loss_scale are those of the next step. */
int train_events_of(const train_record *record, train_event out[TRAIN_EVENTS]);

/* The folder of `section` ("csv_monitor"): output_path/job_name, which is made. With an empty
 * output_path, job_name in the current directory. Messages name the key. */
sifr_status train_events_folder(const char *section, const char *output_path, const char *job_name,
                                char *out, sifr_error *error) SIFR_MUST_CHECK;
/* Its path, in out[BASE_PATH_LENGTH], without making it. */
sifr_status train_events_path(const char *output_path, const char *job_name, char *out,
                              sifr_error *error) SIFR_MUST_CHECK;

#endif
