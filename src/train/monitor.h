/* What people and tools see of a run: the live line, plain lines, metrics files, the summary. */
#ifndef TRAIN_MONITOR_H
#define TRAIN_MONITOR_H

#include <jansson.h>

#include "sifr/engine.h"
#include "train/callbacks.h"
#include "train/evaluate.h"
#include "train/metrics.h"

typedef struct train_monitor_settings {
    const train_host *host;
    const char *output;
    int64_t first_step, total_steps;
    int64_t tokens_per_step;
    double epochs_per_step;
    int64_t log_every;      /* steps between records */
    int64_t print_every;    /* steps between plain lines; 0: with the records, one a second */
    double flops_per_token; /* the field's own count */
    double limit;           /* operations a second that the machine can do; 0: not known */
    bool scaled;            /* in fp16: the loss scale is shown */
} train_monitor_settings;

typedef struct train_monitor {
    train_monitor_settings settings;
    train_metrics metrics;
    double began, last_live, last_print, last_record; /* seconds of the clock */
    int64_t last_record_step;
    double step_seconds; /* of a step, smoothed, for the time left */
    double loss_sum;     /* since the last record */
    int64_t loss_count;
    int64_t skipped;       /* in all */
    double last_loss;      /* of the last record */
    double last_eval_loss; /* NaN: none yet */
    uint64_t memory;       /* bytes, when it was last looked at: at a record */
    uint64_t shared;       /* of them, through windows */
    uint64_t largest_own;  /* of all looks: the others */
} train_monitor;

/* On a rank that only watches its memory. */
void train_monitor_open_silent(train_monitor *monitor, const train_monitor_settings *settings);

/* `state`: what train_monitor_state gave at the step from which the run goes on, or NULL. */
sifr_status train_monitor_open(train_monitor *monitor, const train_monitor_settings *settings,
                               const json_t *state, sifr_error *error) SIFR_MUST_CHECK;
void train_monitor_close(train_monitor *monitor); /* harmless on a zeroed one */

/* Step number `step` (from 1) is done and took `seconds`. */
sifr_status train_monitor_step(train_monitor *monitor, int64_t step, const sifr_step_result *result,
                               double learning_rate, double seconds,
                               sifr_error *error) SIFR_MUST_CHECK;
/* On a rank that records nothing: looks at its memory where a record would be made. */
void train_monitor_watch(train_monitor *monitor, int64_t step);
sifr_status train_monitor_evaluation(train_monitor *monitor, int64_t step,
                                     const train_evaluation *evaluation,
                                     sifr_error *error) SIFR_MUST_CHECK;
/* Seconds that went elsewhere, and are no part of the training's rate. */
void train_monitor_pause(train_monitor *monitor, double seconds);
/* Is there an evaluation of this step already? */
bool train_monitor_evaluated(const train_monitor *monitor, int64_t step);

/* For a checkpoint; new objects, NULL when memory ran out. */
json_t *train_monitor_state(const train_monitor *monitor);
json_t *train_monitor_trainer_state(const train_monitor *monitor, int64_t step);

#endif
