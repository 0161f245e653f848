/* The names of a classifier's labels: label i is names[i]. */
#ifndef MODEL_LABELS_H
#define MODEL_LABELS_H

#include <jansson.h>

#include "model/model_config.h"

typedef struct model_labels {
    char **names;
    int64_t count;
    int64_t *sorted; /* their numbers by name */
} model_labels;

/* Copies names, which must differ; `where` begins the message of an error, SIFR_USAGE. Frees what
 * *out held before: zero it first. */
sifr_status model_labels_make(const char *const *names, int64_t count, const char *where,
                              model_labels *out, sifr_error *error) SIFR_MUST_CHECK;
/* LABEL_0, LABEL_1 and so on. */
sifr_status model_labels_number(int64_t count, const char *where, model_labels *out,
                                sifr_error *error) SIFR_MUST_CHECK;
void model_labels_free(model_labels *labels); /* harmless on zeroed ones */

/* Those of a parsed config.json: "id2label", else "num_labels" (2 where absent) of LABEL_0, LABEL_1
 * and so on. SIFR_USAGE where the keys of id2label are not 0 … n - 1, a name stands twice, or
 * "num_labels" or "label2id" says something else. */
sifr_status model_labels_read(const json_t *config, const char *name, model_labels *out,
                              sifr_error *error) SIFR_MUST_CHECK;
/* The same of a file, or of the model folder that holds it. */
sifr_status model_labels_load(const char *path, model_labels *out,
                              sifr_error *error) SIFR_MUST_CHECK;

/* The number of a name of `length` bytes; -1: there is none. */
int64_t model_labels_find(const model_labels *labels, const char *name, size_t length);
bool model_labels_equal(const model_labels *a, const model_labels *b);

#endif
