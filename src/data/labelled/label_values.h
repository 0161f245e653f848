/* The label of a row of labelled data as numbers. */
#ifndef DATA_LABEL_VALUES_H
#define DATA_LABEL_VALUES_H

#include "data/records/records.h"
#include "model/labels.h"

/* What a row's value is read with, and where it stands, for messages. */
typedef struct data_label_place {
    const model_labels *labels;
    const char *file, *column;
    int64_t line;
} data_label_place;

/* The number of a label: a name, or the number itself where no name is the same. */
sifr_status data_label_number(const data_label_place *place, const json_t *value, int32_t *out,
                              sifr_error *error) SIFR_MUST_CHECK;

/* Those of a row's words, which `value` must list: `count` of them. */
sifr_status data_label_list(const data_label_place *place, const json_t *value, size_t count,
                            int32_t *out, sifr_error *error) SIFR_MUST_CHECK;

/* A number for each label: 1 for those that the value names, a list or a text with | between, else
 * 0. */
sifr_status data_label_set(const data_label_place *place, const json_t *value, float *out,
                           sifr_error *error) SIFR_MUST_CHECK;

/* The numbers of a regression, as many as there are labels: a number or a text, or a list. */
sifr_status data_label_reals(const data_label_place *place, const json_t *value, float *out,
                             sifr_error *error) SIFR_MUST_CHECK;

#endif
