#include "train/report/metric_list.h"

#include "train/objective/objectives.h"

#define EACH TRAIN_EACH_STEP
#define RECORD TRAIN_EACH_RECORD
#define EVALUATION TRAIN_EACH_EVALUATION
/* clang-format off */
static const train_metric list[TRAIN_METRICS] = {
    /* key, unit, when, whole, column of metrics.csv, tag of DeepSpeed */
    [TRAIN_EPOCH]             = {"epoch",             "epochs",     RECORD,     false, 1, NULL},
    [TRAIN_LOSS]              = {"loss",              "nats",       EACH,       false, 2, "train_loss"},
    [TRAIN_GRAD_NORM]         = {"grad_norm",         "",           EACH,       false, 3, NULL},
    [TRAIN_LEARNING_RATE]     = {"learning_rate",     "",           EACH,       false, 4, "lr"},
    [TRAIN_TOKENS_PER_SECOND] = {"tokens_per_second", "tokens / s", RECORD,     false, 5, NULL},
    [TRAIN_TOKENS]            = {"tokens",            "tokens",     RECORD,     true,  6, NULL},
    [TRAIN_MEMORY_BYTES]      = {"memory_bytes",      "bytes",      RECORD,     true,  8, NULL},
    [TRAIN_SKIPPED]           = {"skipped",           "steps",      RECORD,     true,  9, NULL},
    [TRAIN_SECONDS]           = {"seconds",           "s",          RECORD,     false, 10, NULL},
    [TRAIN_LIMIT_SHARE]       = {"limit_share",       "",           RECORD,     false, 7, NULL},
    [TRAIN_LOSS_SCALE]        = {"loss_scale",        "",           EACH,       false, 13, "loss_scale"},
    [TRAIN_EVAL_LOSS]         = {"eval_loss",         "nats",       EVALUATION, false, 11, "eval_loss"},
    [TRAIN_EVAL_WINDOWS]      = {"eval_windows",      "windows",    EVALUATION, true,  0, NULL},
    [TRAIN_EVAL_SECONDS]      = {"eval_seconds",      "s",          EVALUATION, false, 0, NULL},
    [TRAIN_EVAL_PERPLEXITY]   = {"eval_perplexity",   "",           EVALUATION, false, 12, NULL},
};
/* clang-format on */
enum { COLUMNS = 14 }; /* with the step */

const train_metric *train_metric_at(train_metric_id id) {
    return &list[id];
}

const char *train_metric_column(const train_objective *objective, int column, char out[64]) {
    if (column == 0) return "step";
    if (column >= COLUMNS)
        return train_objective_column(objective, (size_t)(column - COLUMNS), out);
    int id = 0;
    while (list[id].column != column) id++;
    return list[id].key;
}

const char *train_metric_history(int key, char out[64]) {
    static const train_metric_id common[] = {TRAIN_EPOCH, TRAIN_LOSS, TRAIN_LEARNING_RATE,
                                             TRAIN_GRAD_NORM, TRAIN_EVAL_LOSS};
    static const char *const scores[] = {"eval_accuracy", "eval_f1"};
    enum { COMMON = sizeof common / sizeof *common, SCORES = sizeof scores / sizeof *scores };
    if (key < COMMON) return list[common[key]].key;
    if (key < COMMON + SCORES) return scores[key - COMMON];
    return train_objective_history((size_t)(key - COMMON - SCORES), out);
}
