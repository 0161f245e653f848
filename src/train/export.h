/* A model folder from a model folder, a checkpoint or the output folder of a run. */
#ifndef TRAIN_EXPORT_H
#define TRAIN_EXPORT_H

#include <stdint.h>

#include "base/errors.h"

typedef struct train_exported {
    char from[4096]; /* the checkpoint or the folder that was taken */
    int64_t step;    /* of the checkpoint; -1: a model folder */
    int64_t parameters;
    uint64_t bytes; /* of the weights, as written */
} train_exported;

/* Writes `destination`, which must not be there or be an empty folder: the weights in the types
 * that the run's own model has, config.json, the tokenizer and what else is beside them, without
 * the records of a run. Tensors go through memory in pieces. The folder appears whole or not at
 * all. */
sifr_status train_export(const char *source, const char *destination, const sifr_log *log,
                         train_exported *out, sifr_error *error) SIFR_MUST_CHECK;

#endif
