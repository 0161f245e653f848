/* Makes a model folder from a checkpoint, the output folder of a run, or another model folder. */
#ifndef CONVERT_EXPORT_H
#define CONVERT_EXPORT_H

#include <stdint.h>

#include "base/errors.h"
#include "checkpoint/model_source.h"

typedef struct convert_exported {
    char from[4096]; /* the checkpoint or folder that was used */
    int64_t step;    /* step of the checkpoint; -1: a model folder */
    int64_t parameters;
    uint64_t bytes; /* bytes of the weights as written */
} convert_exported;

/* Writes `destination`, which must be absent or an empty folder: the weights in the types of the
 * run's own model, config.json, the tokenizer and other files of the model folder, without the
 * records of a run. Tensors are copied in pieces, so memory is bounded. The folder appears complete
 * or not at all. `average`: the average of the weights, of a checkpoint. `text`: of a folder with a
 * tower the text model alone. */
sifr_status convert_export(const char *source, const char *destination, bool average, bool text,
                           const sifr_log *log, convert_exported *out,
                           sifr_error *error) SIFR_MUST_CHECK;

/* The same from a checkpoint of a run with Adam: a universal checkpoint of DeepSpeed, with fp32
 * weights and moments (export_universal.c). */
sifr_status convert_export_universal(const char *source, const char *destination,
                                     const sifr_log *log, convert_exported *out,
                                     sifr_error *error) SIFR_MUST_CHECK;

#endif
