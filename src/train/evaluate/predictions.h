/* What a classifier predicts in an evaluation, beside its labels: gathered in the order of the
 * examples, so that scores do not depend on the number of ranks. */
#ifndef TRAIN_PREDICTIONS_H
#define TRAIN_PREDICTIONS_H

#include "train/evaluate/measure.h"

typedef struct train_predictions {
    const data_set *data;
    const data_labelled *labelled;
    int64_t length, classes, windows;
    int64_t width; /* numbers of an example: classes or values */
    float *logits; /* of a micro batch */
    float *all;    /* numbers of all examples */
} train_predictions;

/* For the first `windows` examples, `sequences` at a time. */
sifr_status train_predictions_open(const data_set *data, int64_t classes, int64_t sequences,
                                   int64_t length, int64_t windows, train_predictions *out,
                                   sifr_error *error) SIFR_MUST_CHECK;
void train_predictions_close(train_predictions *predictions); /* harmless on zeroed ones */

/* Has a pass over the examples take the logits, and gather what is predicted by them. */
void train_predictions_watch(train_predictions *predictions, infer_evaluator *pass);

/* Scores of all: classes, several labels, numbers, or entities where tags are IOB2. */
sifr_status train_predictions_score(const train_predictions *predictions, train_scores *out,
                                    sifr_error *error) SIFR_MUST_CHECK;

/* The same, of an evaluation during training. */
extern const train_measure train_measure_predictions;

#endif
