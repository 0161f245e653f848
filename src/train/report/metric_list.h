/* The list of what a run measures: all that shows, keeps or sends metrics goes by it. What an
 * objective measures beside the loss comes behind (train/objective/objectives.h). */
#ifndef TRAIN_METRIC_LIST_H
#define TRAIN_METRIC_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct train_objective;

/* When a metric has a new value. Records are of one of these, too. */
typedef enum train_when {
    TRAIN_EACH_STEP,
    TRAIN_EACH_RECORD, /* each logging_steps, over the steps since the record before */
    TRAIN_EACH_EVALUATION
} train_when;

/* In the order in which the records of metrics.jsonl have them. */
typedef enum train_metric_id {
    TRAIN_EPOCH,
    TRAIN_LOSS,
    TRAIN_GRAD_NORM,
    TRAIN_LEARNING_RATE,
    TRAIN_TOKENS_PER_SECOND,
    TRAIN_TOKENS,
    TRAIN_MEMORY_BYTES,
    TRAIN_SKIPPED,
    TRAIN_SECONDS,
    TRAIN_LIMIT_SHARE,
    TRAIN_LOSS_SCALE,
    TRAIN_EVAL_LOSS,
    TRAIN_EVAL_WINDOWS,
    TRAIN_EVAL_SECONDS,
    TRAIN_EVAL_PERPLEXITY,
    TRAIN_METRICS
} train_metric_id;

typedef struct train_metric {
    const char *key;  /* in records */
    const char *unit; /* "" where there is none */
    train_when when;
    bool whole; /* a whole number */
    int column; /* place in metrics.csv, behind the step, which is 0; 0: it is not there */
    const char *deepspeed; /* the last part of its tag there; NULL: DeepSpeed has none */
} train_metric;

const train_metric *train_metric_at(train_metric_id id);

/* The name of column number `column` of metrics.csv, of a run that learns `objective` (NULL: common
 * columns alone); NULL: there is no more. */
const char *train_metric_column(const struct train_objective *objective, int column, char out[64]);

/* The key number `key` of what transformers' Trainer and TRL keep in log_history, beside the step;
 * NULL: there is no more. */
const char *train_metric_history(int key, char out[64]);
enum { TRAIN_HISTORY_EVAL_LOSS = 4 }; /* of these keys */

#endif
