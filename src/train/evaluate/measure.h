/* What an evaluation measures beside the loss: a row, which an objective names
 * (train/objective/objectives.h). */
#ifndef TRAIN_MEASURE_H
#define TRAIN_MEASURE_H

#include "data/data.h"
#include "infer/evaluator.h"
#include "sifr/engine.h"
#include "train/evaluate/scores.h"

/* An evaluation under way. */
typedef struct train_measured {
    sifr_engine *engine;
    const data_set *data;
    int64_t sequences, length; /* of a micro batch, and their tokens */
    int64_t windows;
} train_measured;

typedef struct train_measure {
    bool pairs; /* two windows, one behind the other, are measured together */
    /* Has the pass gather numbers of its windows. *out is for `score` and `close`, also where this
     * fails. */
    sifr_status (*open)(const train_measured *of, infer_evaluator *pass, void **out,
                        sifr_error *error);
    /* Once numbers of all windows are there. */
    sifr_status (*score)(const void *measure, train_scores *out, sifr_error *error);
    void (*close)(void *measure); /* harmless on NULL */
} train_measure;

#endif
