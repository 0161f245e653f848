/* Which columns of labelled data hold texts and labels: as the user says, or by their usual names.
 */
#ifndef DATA_LABEL_COLUMNS_H
#define DATA_LABEL_COLUMNS_H

#include "data/records/records.h"
#include "model/model_config.h"

/* Names of columns, those of a user (NULL: to be found) or found. */
typedef struct data_label_columns {
    const char *text, *pair, *label; /* `pair` NULL: one text */
} data_label_columns;

/* Finds what `asked` leaves open; the names belong to `asked` or are constant. SIFR_USAGE, with the
 * columns that are there, where one is missing. Without `labelled` that of the label may be. */
sifr_status data_label_columns_find(const data_records *records, model_task task, bool labelled,
                                    const data_label_columns *asked, data_label_columns *out,
                                    sifr_error *error) SIFR_MUST_CHECK;

#endif
