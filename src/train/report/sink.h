/* Where records go: a row for each sink, in a file of its own. */
#ifndef TRAIN_SINK_H
#define TRAIN_SINK_H

#include "data/epochs.h"
#include "train/report/callbacks.h"
#include "train/report/record.h"

/* What a run reports, and of which run. All of it outlives the sinks. */
typedef struct train_report_settings {
    const train_host *host;
    const char *output;
    int64_t first_step, total_steps;
    int64_t length; /* of a sequence */
    data_epochs epochs;
    int64_t log_every; /* steps between records */
    int64_t
        print_every; /* steps between progress lines; 0: with the records, at most one a second */
    double flops_per_token;           /* the field's own count */
    double limit;                     /* the machine's limit in operations a second; 0: not known */
    bool scaled;                      /* in fp16: the loss scale is shown */
    const train_objective *objective; /* whose measures records have; NULL: no objective's */
    const sifr_config *config;        /* what sinks are asked for; NULL: none */
    struct train_queue *queue;        /* the way to them; NULL: none is asked for */
    /* Is told the records that a resumed run already has; may be NULL. */
    sifr_status (*earlier)(void *user, const json_t *record, sifr_error *error);
    void *user;
    bool failed; /* the run has ended by an error; set before the sinks are closed */
} train_report_settings;

typedef struct train_sink {
    const char *name;
    bool (*asked)(const sifr_config *config); /* NULL: always */
    /* *out is passed to the others. */
    sifr_status (*open)(const train_report_settings *settings, void **out, sifr_error *error);
    /* SIFR_FAILED for what cannot be written now: the run goes on. A sink that is asked for keeps
     * what it can for the next record. */
    sifr_status (*record)(void *sink, const train_record *record, sifr_error *error);
    void (*close)(void *sink); /* harmless on NULL */
    /* Of a file that loses no record, at the end: tries again to write what is not in it. True: it
     * lacks records, and `line` says so. NULL: another sink. */
    bool (*lacks)(void *sink, char line[SIFR_ERROR_LENGTH]);
    /* Of a sink that works on behind its records; both may be NULL. */
    void (*finish)(void *sink); /* after the last record: may take its time */
    /* The next line that the user is to see, a warning; false: there is none. By the thread of the
     * steps: takes no time. */
    bool (*news)(void *sink, char line[SIFR_ERROR_LENGTH]);
} train_sink;

extern const train_sink train_jsonl, train_csv; /* in this order: the second reads the first's */
extern const train_sink train_line;

/* Those that are asked for, which a thread of their own serves (report/queue.h). They are opened in
 * this order, in which a file is made once nothing is left that is often refused. */
#define TRAIN_ASKED_SINKS(SINK)                                                                    \
    SINK(train_mlflow_sink)                                                                        \
    SINK(train_prometheus_page)                                                                    \
    SINK(train_csv_monitor)                                                                        \
    SINK(train_prometheus_file) SINK(train_tensorboard)
#define TRAIN_SINK_DECLARED(sink) extern const train_sink sink;
TRAIN_ASKED_SINKS(TRAIN_SINK_DECLARED)

#endif
