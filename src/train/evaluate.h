/* Loss over data that is not trained on. */
#ifndef TRAIN_EVALUATE_H
#define TRAIN_EVALUATE_H

#include "sifr/engine.h"
#include "train/data/data.h"

typedef struct train_evaluation {
    int64_t windows, tokens; /* tokens: with a label */
    double loss;             /* mean over the tokens */
    double perplexity;       /* e^loss */
    double seconds;
} train_evaluation;

/* The first `max_windows` consecutive windows (0: all) of `length` tokens, `sequences` at a time:
 * both as in the engine's options. All ranks of the engine call it, and each takes every
 * size-th micro batch; the result is that of one rank, on all of them. `stopped` (may be NULL) is
 * asked between micro batches; where it gives a signal to any rank, *signal is that on all, and the
 * result covers what was done; else *signal is 0. SIFR_FAILED
 * where the data make no window. */
sifr_status train_evaluate(sifr_engine *engine, const train_data *data, int64_t sequences,
                           int64_t length, int64_t max_windows, int (*stopped)(void *user),
                           void *user, train_evaluation *out, int *signal,
                           sifr_error *error) SIFR_MUST_CHECK;

#endif
