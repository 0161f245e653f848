/* Loss over held-out data, and scores of a classifier. */
#ifndef TRAIN_EVALUATE_H
#define TRAIN_EVALUATE_H

#include "train/evaluate/measure.h"

typedef struct train_evaluation {
    int64_t windows, tokens; /* tokens: with a label */
    double loss;             /* mean over the tokens */
    double perplexity;       /* e^loss */
    bool labelled;           /* the windows are labelled examples, or answers of pairs */
    bool paired;             /* of pairs: tokens are pairs then */
    train_scores scores;     /* of their labels, or rewards */
    double seconds;
} train_evaluation;

/* Evaluates the first `max_windows` consecutive windows (0: all) of `length` tokens, `sequences` at
 * a time; both must equal the engine's options. `measure`: beside the loss, NULL: nothing. All
 * ranks of the engine call it; each takes every size-th micro batch, and all get the result that
 * one rank would. `stopped` (may be NULL) is asked between micro batches. If it returns a signal on
 * any rank, *signal is that signal on all ranks and the result covers the windows done so far;
 * otherwise *signal is 0. SIFR_FAILED if the data are too short for a window. */
sifr_status train_evaluate(sifr_engine *engine, const data_set *data, const train_measure *measure,
                           int64_t sequences, int64_t length, int64_t max_windows,
                           int (*stopped)(void *user), void *user, train_evaluation *out,
                           int *signal, sifr_error *error) SIFR_MUST_CHECK;

#endif
