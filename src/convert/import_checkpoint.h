/* Makes a model folder from a checkpoint of DeepSpeed. */
#ifndef CONVERT_IMPORT_CHECKPOINT_H
#define CONVERT_IMPORT_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

typedef struct convert_imported {
    char from[4096]; /* the folder of the tag */
    int stage;       /* -1: universal */
    size_t ranks, weights;
    int64_t parameters, step; /* step -1: not known */
} convert_imported;

/* Writes `destination`, which must be absent or an empty folder: the checkpoint's fp32 weights, and
 * config.json, tokenizer and the like of `files` (NULL: the checkpoint's folder, where the Trainer
 * puts them). Moments are not taken over. SIFR_FAILED, and nothing written, for a checkpoint whose
 * weights are not those of config.json. */
sifr_status convert_import_checkpoint(const char *checkpoint, const char *files,
                                      const char *destination, const sifr_log *log,
                                      convert_imported *out, sifr_error *error) SIFR_MUST_CHECK;

#endif
