/* Labelled examples: each a text, or two, or a list of words, encoded once, with its labels. An
 * example is a sequence of a batch, padded on its right. */
#ifndef DATA_EXAMPLES_H
#define DATA_EXAMPLES_H

#include <jansson.h>

#include "data/labelled/label_columns.h"
#include "data/rows.h"
#include "model/labels.h"

typedef struct data_examples data_examples;

/* What makes data labelled examples. */
typedef struct data_labelled {
    model_task task; /* MODEL_SEQUENCE_CLASSES or MODEL_TOKEN_CLASSES */
    model_problem problem;
    const model_labels *labels; /* the model's; of a regression only their number counts */
    data_label_columns columns; /* those that the user names */
    int64_t length;             /* tokens of a sequence: longer texts are cut */
    int64_t padding;            /* the id that fills up a sequence */
    bool last; /* the label of a sequence stands at its last token, not at its first */
    int64_t
        passed_over; /* … at its last that is not this id, config.json's pad_token_id; -1: none */
    bool unknown;    /* rows have no labels: theirs are 0, which mark the tokens that answer */
} data_labelled;

typedef struct data_examples_source {
    const char *const *paths;
    size_t count;
    const json_t *rows; /* or, where there are no paths, an array of rows, of `name` */
    const char *name;
    const char *tokenizer; /* folder */
    int64_t vocab_size;
    int threads; /* 0: every core */
    const sifr_log *log;
} data_examples_source;

/* Reads and encodes every row. What is left open by the user, and what was cut, is logged.
 * SIFR_FAILED, with file and line, for a row without a text or with a label that the model does not
 * have. */
sifr_status data_examples_open(const data_examples_source *source, const data_labelled *labelled,
                               data_examples **out, sifr_error *error) SIFR_MUST_CHECK;
void data_examples_close(data_examples *examples); /* NULL is harmless */

const data_labelled *data_examples_labelled(const data_examples *examples);
int64_t data_examples_count(const data_examples *examples);
int64_t data_examples_tokens(const data_examples *examples);  /* without padding */
int64_t data_examples_longest(const data_examples *examples); /* its tokens */
int64_t data_examples_columns(const data_examples *examples); /* of targets; 0: none */
uint64_t data_examples_hash(const data_examples *examples);

/* Example `index` as sequence `at` of the rows. Safe from several threads. */
void data_examples_read(const data_examples *examples, int64_t index, const data_rows *rows,
                        int64_t at);

#endif
