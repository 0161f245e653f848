/* Scores of predictions: what scikit-learn, SciPy and seqeval compute of the same arrays. They are
 * of a whole evaluation, so callers bring all predictions together first. */
#ifndef TRAIN_SCORES_H
#define TRAIN_SCORES_H

#include <stdint.h>

#include "base/errors.h"

typedef struct train_score {
    const char *name;
    double value; /* NaN: not defined; null in JSON */
} train_score;

enum { TRAIN_MOST_SCORES = 8 };

typedef struct train_scores {
    train_score items[TRAIN_MOST_SCORES];
    int count;
} train_scores;

/* One class of `classes` for each entry: accuracy, f1 (of class 1; only where there are two
 * classes), f1_macro (over the classes that occur), f1_micro, matthews_correlation. Entries with a
 * negative label are left out. SIFR_FAILED for a class that there is not. */
sifr_status train_score_classes(const int32_t *labels, const int32_t *predictions, int64_t count,
                                int32_t classes, train_scores *out,
                                sifr_error *error) SIFR_MUST_CHECK;

/* `columns` answers, 0 or 1, for each of `rows` entries: accuracy (of whole entries), f1_micro,
 * f1_macro (over all columns). */
sifr_status train_score_multilabel(const int32_t *labels, const int32_t *predictions, int64_t rows,
                                   int32_t columns, train_scores *out,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* Numbers: mse, pearson, spearman (equal values have their average rank). The correlations are not
 * defined for fewer than two numbers, nor where all are the same. With more than one column (values
 * row by row) there is mse alone, over all. */
sifr_status train_score_regression(const double *targets, const double *predictions, int64_t rows,
                                   int32_t columns, train_scores *out,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* Entities of tagged tokens: precision, recall, f1 over all of them, and accuracy of the tokens.
 * `names` are the tags of labels 0 to classes - 1 ("O", "B-PER", "I-PER" …), read as seqeval does
 * by default: "I-" may begin an entity. Sequence i has entries starts[i] to starts[i + 1] - 1;
 * `starts` has sequences + 1 values. Entries with a negative label are left out. */
sifr_status train_score_entities(const int32_t *labels, const int32_t *predictions,
                                 const int64_t *starts, int64_t sequences, const char *const *names,
                                 int32_t classes, train_scores *out,
                                 sifr_error *error) SIFR_MUST_CHECK;

#endif
