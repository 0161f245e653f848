#include "train/evaluate/predictions.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "engine/handle.h"

sifr_status train_predictions_open(const data_set *data, int64_t classes, int64_t sequences,
                                   int64_t length, int64_t windows, train_predictions *out,
                                   sifr_error *error) {
    *out = (train_predictions){.data = data,
                               .labelled = data_set_labelled(data),
                               .length = length,
                               .classes = classes,
                               .windows = windows,
                               .width = 1};
    if (out->labelled->task == MODEL_TOKEN_CLASSES)
        out->width = length;
    else if (out->labelled->problem != MODEL_SINGLE_LABEL)
        out->width = classes;
    int64_t logits, all;
    if (!base_mul_i64(sequences * length, classes, &logits) ||
        !base_mul_i64(windows, out->width, &all))
        return base_fail_alloc(error, INT64_MAX);
    BASE_TRY(base_alloc((size_t)logits, sizeof *out->logits, &out->logits, error));
    return base_alloc((size_t)all, sizeof *out->all, &out->all, error);
}

void train_predictions_close(train_predictions *p) {
    free(p->logits);
    free(p->all);
    *p = (train_predictions){0};
}

/* The likeliest class, the lowest of equals. */
static float choose(const float *logits, int64_t classes) {
    int64_t best = 0;
    for (int64_t k = 1; k < classes; k++)
        if (logits[k] > logits[best]) best = k;
    return (float)best;
}

/* The numbers of a labelled row, at its place in the example. */
static void take_row(const train_predictions *p, const float *logits, int64_t token, float *out) {
    const data_labelled *labelled = p->labelled;
    if (labelled->task == MODEL_TOKEN_CLASSES) {
        out[token] = choose(logits, p->classes);
    } else if (labelled->problem == MODEL_SINGLE_LABEL) {
        out[0] = choose(logits, p->classes);
    } else {
        bool whole = labelled->problem == MODEL_MULTI_LABEL; /* likelier than not */
        for (int64_t k = 0; k < p->classes; k++) out[k] = whole ? logits[k] > 0 : logits[k];
    }
}

static sifr_status take(void *user, const infer_batch *batch, float *out, sifr_error *error) {
    const train_predictions *p = user;
    const data_rows *rows = batch->rows;
    (void)error;
    memset(out, 0, (size_t)(rows->count * p->width) * sizeof *out);
    for (int64_t i = 0; i < rows->count * p->length; i++) {
        if (rows->labels[i] < 0) continue;
        take_row(p, p->logits + i * p->classes, i % p->length, out + i / p->length * p->width);
    }
    return SIFR_OK;
}

static void put(void *user, int64_t first, int64_t count, const float *numbers) {
    const train_predictions *p = user;
    memcpy(p->all + first * p->width, numbers, (size_t)(count * p->width) * sizeof *numbers);
}

void train_predictions_watch(train_predictions *p, infer_evaluator *pass) {
    pass->logits = p->logits;
    pass->numbers = (infer_row_numbers){.width = p->width, .user = p, .take = take, .put = put};
}

/* --- scores --- */

/* Labels and predictions side by side; targets of examples that have them. */
typedef struct answers {
    int32_t *labels, *predictions;
    double *targets, *values;
    int64_t *starts;
    int64_t count;
} answers;

static void free_answers(answers *a) {
    free(a->labels);
    free(a->predictions);
    free(a->targets);
    free(a->values);
    free(a->starts);
}

static sifr_status make_answers(const train_predictions *p, answers *a, sifr_error *error) {
    size_t count = (size_t)(p->windows * p->width);
    BASE_TRY(base_alloc(count, sizeof *a->labels, &a->labels, error));
    BASE_TRY(base_alloc(count, sizeof *a->predictions, &a->predictions, error));
    BASE_TRY(base_alloc(count, sizeof *a->targets, &a->targets, error));
    BASE_TRY(base_alloc(count, sizeof *a->values, &a->values, error));
    return base_alloc((size_t)p->windows + 1, sizeof *a->starts, &a->starts, error);
}

static void append(answers *a, int32_t label, double target, float value) {
    a->labels[a->count] = label;
    a->predictions[a->count] = (int32_t)value;
    a->targets[a->count] = target;
    a->values[a->count++] = (double)value;
}

/* The labels of an example, read again into one sequence. */
static void add_example(const train_predictions *p, int64_t index, const data_rows *row,
                        answers *a) {
    const float *numbers = p->all + index * p->width;
    bool tokens = p->labelled->task == MODEL_TOKEN_CLASSES;
    data_set_window(p->data, index, row, 0);
    for (int64_t t = 0; t < p->length; t++) {
        if (row->labels[t] < 0) continue;
        const float *targets = row->targets ? row->targets + t * row->columns : NULL;
        for (int64_t k = 0; targets && k < row->columns; k++)
            append(a, (int32_t)targets[k], (double)targets[k], numbers[k]);
        if (!targets) append(a, row->labels[t], 0, numbers[tokens ? t : 0]);
    }
    a->starts[index + 1] = a->count;
}

static bool has_entities(const model_labels *labels) {
    for (int64_t i = 0; i < labels->count; i++)
        if (strncmp(labels->names[i], "B-", 2) == 0 || strncmp(labels->names[i], "I-", 2) == 0)
            return true;
    return false;
}

static sifr_status score(const train_predictions *p, const answers *a, train_scores *out,
                         sifr_error *error) {
    const data_labelled *labelled = p->labelled;
    int32_t classes = (int32_t)p->classes;
    if (labelled->task == MODEL_TOKEN_CLASSES && has_entities(labelled->labels))
        return train_score_entities(a->labels, a->predictions, a->starts, p->windows,
                                    (const char *const *)labelled->labels->names, classes, out,
                                    error);
    if (labelled->task == MODEL_TOKEN_CLASSES || labelled->problem == MODEL_SINGLE_LABEL)
        return train_score_classes(a->labels, a->predictions, a->count, classes, out, error);
    if (labelled->problem == MODEL_MULTI_LABEL)
        return train_score_multilabel(a->labels, a->predictions, p->windows, classes, out, error);
    return train_score_regression(a->targets, a->values, p->windows, classes, out, error);
}

sifr_status train_predictions_score(const train_predictions *p, train_scores *out,
                                    sifr_error *error) {
    answers a = {0};
    data_rows row;
    *out = (train_scores){0};
    BASE_TRY(data_set_rows(p->data, 1, p->length, &row, error));
    sifr_status status = make_answers(p, &a, error);
    for (int64_t i = 0; status == SIFR_OK && i < p->windows; i++) add_example(p, i, &row, &a);
    if (status == SIFR_OK) status = score(p, &a, out, error);
    free_answers(&a);
    data_rows_free(&row);
    return status;
}

/* --- during training --- */

static sifr_status open_measure(const train_measured *of, infer_evaluator *pass, void **out,
                                sifr_error *error) {
    train_predictions *p;
    BASE_TRY(base_alloc(1, sizeof *p, &p, error));
    *out = p;
    *p = (train_predictions){0};
    BASE_TRY(train_predictions_open(of->data, engine_words(engine_model(of->engine)), of->sequences,
                                    of->length, of->windows, p, error));
    train_predictions_watch(p, pass);
    return SIFR_OK;
}

static sifr_status score_measure(const void *measure, train_scores *out, sifr_error *error) {
    return train_predictions_score(measure, out, error);
}

static void close_measure(void *measure) {
    if (measure) train_predictions_close(measure);
    free(measure);
}

const train_measure train_measure_predictions = {
    .open = open_measure, .score = score_measure, .close = close_measure};
