/* The newest values of all metrics, as Prometheus reads them (text format 0.0.4). */
#ifndef TRAIN_PROMETHEUS_H
#define TRAIN_PROMETHEUS_H

#include "train/report/record.h"

enum { TRAIN_PROMETHEUS_MORE = 2 * TRAIN_MEASURES }; /* of steps and of evaluations */

typedef struct train_prometheus {
    const char *run; /* the value of the label "run" */
    int64_t total_steps;
    train_record newest; /* of the list; `has`: those that had a value yet */
    int more;
    struct {
        char key[64];
        double value;
    } of[TRAIN_PROMETHEUS_MORE];
    bool ended;
} train_prometheus;

void train_prometheus_note(train_prometheus *state, const train_record *record);

/* The text, by malloc; NULL if memory ran out. */
char *train_prometheus_text(const train_prometheus *state, size_t *size);

#endif
