#include "train/evaluate/scores.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/heap.h"

/* Counts of one class, or of several together. */
typedef struct score_counts {
    int64_t both, labelled, predicted; /* both: the label and the prediction */
} score_counts;

static void add_score(train_scores *out, const char *name, double value) {
    out->items[out->count++] = (train_score){name, value};
}

static double share(int64_t part, int64_t of) {
    return of ? (double)part / (double)of : 0;
}

static double f1(const score_counts *c) {
    return share(2 * c->both, c->labelled + c->predicted);
}

static double accuracy(int64_t right, int64_t of) {
    return of ? (double)right / (double)of : (double)NAN;
}

/* Over classes that occur (`all`: over every one). */
static double macro_f1(const score_counts *counts, int32_t classes, bool all) {
    double sum = 0;
    int64_t occur = 0;
    for (int32_t c = 0; c < classes; c++) {
        if (!all && !counts[c].labelled && !counts[c].predicted) continue;
        sum += f1(&counts[c]);
        occur++;
    }
    return occur ? sum / (double)occur : 0;
}

static score_counts sum_of(const score_counts *counts, int32_t classes) {
    score_counts sum = {0};
    for (int32_t c = 0; c < classes; c++) {
        sum.both += counts[c].both;
        sum.labelled += counts[c].labelled;
        sum.predicted += counts[c].predicted;
    }
    return sum;
}

/* Gorodkin 2004. */
static double matthews(const score_counts *counts, int32_t classes) {
    score_counts sum = sum_of(counts, classes);
    double n = (double)sum.labelled, cross = 0, labels = 0, predictions = 0;
    for (int32_t c = 0; c < classes; c++) {
        double t = (double)counts[c].labelled, p = (double)counts[c].predicted;
        cross += t * p, labels += t * t, predictions += p * p;
    }
    double spread = (n * n - predictions) * (n * n - labels);
    return spread > 0 ? ((double)sum.both * n - cross) / sqrt(spread) : 0;
}

static sifr_status check_class(int64_t at, int32_t label, int32_t prediction, int32_t classes,
                               sifr_error *error) {
    if (label < classes && prediction >= 0 && prediction < classes) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "scores: entry %lld has label %d and prediction %d, but there are classes 0 "
                     "to %d only",
                     (long long)at, label, prediction, classes - 1);
}

static sifr_status count_classes(const int32_t *labels, const int32_t *predictions, int64_t count,
                                 int32_t classes, score_counts *counts, sifr_error *error) {
    for (int64_t i = 0; i < count; i++) {
        if (labels[i] < 0) continue;
        BASE_TRY(check_class(i, labels[i], predictions[i], classes, error));
        counts[labels[i]].labelled++;
        counts[predictions[i]].predicted++;
        counts[labels[i]].both += labels[i] == predictions[i];
    }
    return SIFR_OK;
}

sifr_status train_score_classes(const int32_t *labels, const int32_t *predictions, int64_t count,
                                int32_t classes, train_scores *out, sifr_error *error) {
    score_counts *counts;
    *out = (train_scores){0};
    BASE_TRY(base_alloc((size_t)classes, sizeof *counts, &counts, error));
    sifr_status status = count_classes(labels, predictions, count, classes, counts, error);
    if (status == SIFR_OK) {
        score_counts sum = sum_of(counts, classes);
        add_score(out, "accuracy", accuracy(sum.both, sum.labelled));
        if (classes == 2) add_score(out, "f1", f1(&counts[1]));
        add_score(out, "f1_macro", macro_f1(counts, classes, false));
        add_score(out, "f1_micro", f1(&sum));
        add_score(out, "matthews_correlation", matthews(counts, classes));
    }
    free(counts);
    return status;
}

sifr_status train_score_multilabel(const int32_t *labels, const int32_t *predictions, int64_t rows,
                                   int32_t columns, train_scores *out, sifr_error *error) {
    score_counts *counts;
    int64_t right = 0;
    *out = (train_scores){0};
    BASE_TRY(base_alloc((size_t)columns, sizeof *counts, &counts, error));
    for (int64_t r = 0; r < rows; r++) {
        bool all = true;
        for (int32_t c = 0; c < columns; c++) {
            bool label = labels[r * columns + c] != 0, said = predictions[r * columns + c] != 0;
            counts[c].labelled += label;
            counts[c].predicted += said;
            counts[c].both += label && said;
            all = all && label == said;
        }
        right += all;
    }
    score_counts sum = sum_of(counts, columns);
    add_score(out, "accuracy", accuracy(right, rows));
    add_score(out, "f1_micro", f1(&sum));
    add_score(out, "f1_macro", macro_f1(counts, columns, true));
    free(counts);
    return SIFR_OK;
}

static double mean_of(const double *values, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += values[i];
    return sum / (double)count;
}

static bool is_constant(const double *values, int64_t count) {
    for (int64_t i = 1; i < count; i++) {
        if (!(values[i] == values[0])) return false;
    }
    return true;
}

/* The greatest distance from `mean`; NaN where a value is not finite. */
static double reach_of(const double *values, int64_t count, double mean) {
    double most = 0;
    for (int64_t i = 0; i < count; i++) {
        double d = fabs(values[i] - mean);
        if (!isfinite(d)) return (double)NAN;
        most = fmax(most, d);
    }
    return most;
}

/* Distances are divided by the greatest first, so that no square over- or underflows. */
static double pearson(const double *x, const double *y, int64_t count) {
    if (count < 2 || is_constant(x, count) || is_constant(y, count)) return (double)NAN;
    double mx = mean_of(x, count), my = mean_of(y, count), xx = 0, yy = 0, xy = 0;
    double dx = reach_of(x, count, mx), dy = reach_of(y, count, my);
    for (int64_t i = 0; i < count; i++) {
        double a = (x[i] - mx) / dx, b = (y[i] - my) / dy;
        xx += a * a, yy += b * b, xy += a * b;
    }
    double r = xy / (sqrt(xx) * sqrt(yy));
    return isnan(r) ? r : fmax(-1, fmin(1, r));
}

typedef struct score_ranked {
    double value;
    int64_t at;
} score_ranked;

static int compare_values(const void *a, const void *b) {
    const score_ranked *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

/* From 1 on; equal values share the average of their ranks. */
static void rank(score_ranked *sorted, const double *values, int64_t count, double *out) {
    for (int64_t i = 0; i < count; i++) sorted[i] = (score_ranked){values[i], i};
    qsort(sorted, (size_t)count, sizeof *sorted, compare_values);
    for (int64_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && sorted[end].value == sorted[i].value;) end++;
        for (int64_t j = i; j < end; j++) out[sorted[j].at] = 0.5 * (double)(i + 1 + end);
    }
}

static bool all_numbers(const double *values, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (isnan(values[i])) return false;
    }
    return true;
}

static sifr_status spearman(const double *x, const double *y, int64_t count, double *out,
                            sifr_error *error) {
    score_ranked *sorted;
    double *ranks = NULL;
    *out = (double)NAN;
    if (count < 2 || !all_numbers(x, count) || !all_numbers(y, count)) return SIFR_OK;
    BASE_TRY(base_alloc((size_t)count, sizeof *sorted, &sorted, error));
    sifr_status status = base_alloc((size_t)count, 2 * sizeof *ranks, &ranks, error);
    if (status == SIFR_OK) {
        rank(sorted, x, count, ranks);
        rank(sorted, y, count, ranks + count);
        *out = pearson(ranks, ranks + count, count);
    }
    free(sorted);
    free(ranks);
    return status;
}

sifr_status train_score_regression(const double *targets, const double *predictions, int64_t rows,
                                   int32_t columns, train_scores *out, sifr_error *error) {
    int64_t count = rows * columns;
    double sum = 0, correlation;
    *out = (train_scores){0};
    for (int64_t i = 0; i < count; i++) {
        double d = predictions[i] - targets[i];
        sum += d * d;
    }
    add_score(out, "mse", count ? sum / (double)count : (double)NAN);
    if (columns != 1) return SIFR_OK;
    BASE_TRY(spearman(targets, predictions, count, &correlation, error));
    add_score(out, "pearson", pearson(targets, predictions, count));
    add_score(out, "spearman", correlation);
    return SIFR_OK;
}
