/* What a classifier predicts in an evaluation, beside its labels: gathered in the order of the
 * examples, so that scores do not depend on the number of ranks. */
#ifndef TRAIN_PREDICTIONS_H
#define TRAIN_PREDICTIONS_H

#include "data/data.h"
#include "train/evaluate/scores.h"

typedef struct train_predictions {
    const data_set *data;
    const data_labelled *labelled;
    int64_t length, classes, windows;
    int64_t width; /* numbers of an example: classes or values */
    float *logits; /* of a micro batch */
    float *mine;   /* numbers of a micro batch */
    float *all;    /* of all examples */
} train_predictions;

/* For the first `windows` examples, `sequences` at a time. */
sifr_status train_predictions_open(const data_set *data, int64_t classes, int64_t sequences,
                                   int64_t length, int64_t windows, train_predictions *out,
                                   sifr_error *error) SIFR_MUST_CHECK;
void train_predictions_close(train_predictions *predictions); /* harmless on zeroed ones */

/* Makes `mine` from `logits` and the rows' labels, for all sequences of the rows. */
void train_predictions_take(const train_predictions *predictions, const data_rows *rows);

/* Puts the numbers of examples first … first + count - 1, those beyond `windows` left out. */
void train_predictions_put(const train_predictions *predictions, const float *numbers,
                           int64_t first, int64_t count);

/* Scores of all: classes, several labels, numbers, or entities where tags are IOB2. */
sifr_status train_predictions_score(const train_predictions *predictions, train_scores *out,
                                    sifr_error *error) SIFR_MUST_CHECK;

#endif
