/* Labelled examples: each a text, or two, or a list of words, encoded once, with its labels. An
 * example is a sequence of a batch, padded on its right. */
#ifndef TRAIN_EXAMPLES_H
#define TRAIN_EXAMPLES_H

#include <jansson.h>

#include "data/labelled/label_columns.h"
#include "data/rows.h"
#include "model/labels.h"

typedef struct train_examples train_examples;

/* What makes data labelled examples. */
typedef struct train_labelled {
    model_task task; /* MODEL_SEQUENCE_CLASSES or MODEL_TOKEN_CLASSES */
    model_problem problem;
    const model_labels *labels;  /* the model's; of a regression only their number counts */
    train_label_columns columns; /* those that the user names */
    int64_t length;              /* tokens of a sequence: longer texts are cut */
    int64_t padding;             /* the id that fills up a sequence */
    bool last; /* the label of a sequence stands at its last token, not at its first */
    int64_t
        passed_over; /* … at its last that is not this id, config.json's pad_token_id; -1: none */
    bool unknown;    /* rows have no labels: theirs are 0, which mark the tokens that answer */
} train_labelled;

typedef struct train_examples_source {
    const char *const *paths;
    size_t count;
    const json_t *rows; /* or, where there are no paths, an array of rows, of `name` */
    const char *name;
    const char *tokenizer; /* folder */
    int64_t vocab_size;
    int threads; /* 0: every core */
    const sifr_log *log;
} train_examples_source;

/* Reads and encodes every row. What is left open by the user, and what was cut, is logged.
 * SIFR_FAILED, with file and line, for a row without a text or with a label that the model does not
 * have. */
sifr_status train_examples_open(const train_examples_source *source, const train_labelled *labelled,
                                train_examples **out, sifr_error *error) SIFR_MUST_CHECK;
void train_examples_close(train_examples *examples); /* NULL is harmless */

const train_labelled *train_examples_labelled(const train_examples *examples);
int64_t train_examples_count(const train_examples *examples);
int64_t train_examples_tokens(const train_examples *examples);  /* without padding */
int64_t train_examples_longest(const train_examples *examples); /* its tokens */
int64_t train_examples_columns(const train_examples *examples); /* of targets; 0: none */
uint64_t train_examples_hash(const train_examples *examples);

/* Example `index` as sequence `at` of the rows. Safe from several threads. */
void train_examples_read(const train_examples *examples, int64_t index, const train_rows *rows,
                         int64_t at);

#endif
