/* Makes the records of a run, and hands them to its sinks. */
#ifndef TRAIN_MONITOR_H
#define TRAIN_MONITOR_H

#include <jansson.h>

#include "base/json.h"
#include "sifr/engine.h"
#include "train/evaluate/evaluate.h"
#include "train/report/history.h"
#include "train/report/sink.h"
#include "train/view/view_pace.h"

enum { TRAIN_SINKS = 3 };

typedef struct train_monitor {
    train_report_settings settings;
    void *sink[TRAIN_SINKS];
    bool behind;               /* a file lacks records */
    train_history history;     /* of the run, including what is before a resume */
    double began, last_record; /* seconds of the clock */
    int64_t last_record_step;
    train_view_pace pace; /* by step, for the time left */
    double last_step;     /* when it was done */
    double loss_sum;      /* since the last record */
    int64_t loss_count;
    double measures[TRAIN_MEASURES]; /* likewise, of the objective; sums over steps */
    int64_t measured;                /* steps in them */
    int64_t skipped;                 /* in all */
    double last_loss;                /* of the last record */
    double last_eval_loss;           /* NaN: none yet */
    uint64_t memory;                 /* bytes, measured at the last record */
    uint64_t shared;                 /* of them, through windows */
    uint64_t largest_own;            /* of all looks: the others */
} train_monitor;

/* Opens the monitor of a rank that only measures its memory. */
void train_monitor_open_silent(train_monitor *monitor, const train_report_settings *settings);

/* `state`: the result of train_monitor_state at the step from which the run resumes, or NULL. */
sifr_status train_monitor_open(train_monitor *monitor, const train_report_settings *settings,
                               const json_t *state, sifr_error *error) SIFR_MUST_CHECK;
/* After the last record: says what files lack. False: metrics.jsonl lacks records. */
bool train_monitor_finish(train_monitor *monitor);
void train_monitor_close(train_monitor *monitor); /* harmless on a zeroed one */

/* What the objective has measured of the step that is reported next. */
void train_monitor_measured(train_monitor *monitor, const double measures[TRAIN_MEASURES]);

/* Reports a step that is done. */
sifr_status train_monitor_step(train_monitor *monitor, const train_step_event *event,
                               sifr_error *error) SIFR_MUST_CHECK;
/* On a rank without records: measures memory when a record would be made. */
void train_monitor_watch(train_monitor *monitor, int64_t step);
sifr_status train_monitor_evaluation(train_monitor *monitor, int64_t step,
                                     const train_evaluation *evaluation,
                                     sifr_error *error) SIFR_MUST_CHECK;
/* Excludes `seconds`, which have just passed, from the training rate and the time left. */
void train_monitor_pause(train_monitor *monitor, double seconds);
/* Whether this step has been evaluated already. */
bool train_monitor_evaluated(const train_monitor *monitor, int64_t step);

/* State for a checkpoint: new objects, or NULL if memory ran out. */
json_t *train_monitor_state(const train_monitor *monitor);
json_t *train_monitor_trainer_state(const train_monitor *monitor, int64_t step);
/* The rest of trainer_state.json. */
base_json_list train_monitor_history(train_monitor *monitor);

#endif
