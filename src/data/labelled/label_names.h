/* The names of labels where a model gets a new head: those that training data have. */
#ifndef DATA_LABEL_NAMES_H
#define DATA_LABEL_NAMES_H

#include "data/labelled/label_columns.h"
#include "model/labels.h"

/* Reads the label column of every file. Numbers come first, ascending, then names in alphabetical
 * order. `many`: a row may have several (multi label). Zero *out first. */
sifr_status data_label_names(const char *const *paths, size_t count, model_task task, bool many,
                             const data_label_columns *asked, model_labels *out,
                             sifr_error *error) SIFR_MUST_CHECK;

/* Those that a user lists; a list of one is split at commas. `key` begins the messages. */
sifr_status data_label_names_listed(const char *const *names, size_t count, const char *key,
                                    model_labels *out, sifr_error *error) SIFR_MUST_CHECK;

#endif
