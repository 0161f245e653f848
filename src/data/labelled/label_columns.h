/* Which columns of labelled data hold texts and labels: as the user says, or by their usual names.
 */
#ifndef TRAIN_LABEL_COLUMNS_H
#define TRAIN_LABEL_COLUMNS_H

#include "data/records/records.h"
#include "model/model_config.h"

/* Names of columns, those of a user (NULL: to be found) or found. */
typedef struct train_label_columns {
    const char *text, *pair, *label; /* `pair` NULL: one text */
} train_label_columns;

/* Finds what `asked` leaves open; the names belong to `asked` or are constant. SIFR_USAGE, with the
 * columns that are there, where one is missing. Without `labelled` that of the label may be. */
sifr_status train_label_columns_find(const formats_records *records, model_task task, bool labelled,
                                     const train_label_columns *asked, train_label_columns *out,
                                     sifr_error *error) SIFR_MUST_CHECK;

#endif
