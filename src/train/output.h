/* The output folder of a run: whether it may be used, and what marks it as sifr's. */
#ifndef TRAIN_OUTPUT_H
#define TRAIN_OUTPUT_H

#include <stdbool.h>

#include "base/status.h"

/* The effective config, and the mark: a folder that holds it was made by `sifr train`. */
#define TRAIN_OUTPUT_MARK "sifr_config.json"

typedef struct train_output {
    const char *path;
    bool there;  /* the folder was there before */
    bool marked; /* and was a run's */
} train_output;

/* SIFR_USAGE where the folder holds something else, is the model folder itself, or holds the
 * results of a run and `resume` is false. Changes nothing. */
sifr_status train_output_check(const char *path, const char *model, bool resume, train_output *out,
                               sifr_error *error) SIFR_MUST_CHECK;

/* Before the first step went wrong: the output becomes what it was. */
void train_output_undo(const train_output *output);

#endif
