/* manifest.json of a checkpoint:
 *
 *     {"format": "sifr checkpoint", "version": 1, "step": 40, "updates": 40,
 *      "agree": {…}, "notes": {…}, "state": {…},
 *      "files": [{"name": "state-00001-of-00001.safetensors", "bytes": 1234, "xxh3": "…"}, …],
 *      "ranges": [{"weight": "wte.weight", "part": "master", "first": 0, "count": 4096,
 *                  "file": 0, "tensor": "master/wte.weight"}, …],
 *      "xxh3": "…"}
 *
 * The last is the hash of the manifest itself without it, keys sorted, no blanks. */
#ifndef CHECKPOINT_MANIFEST_H
#define CHECKPOINT_MANIFEST_H

#include "checkpoint/checkpoint.h"
#include "formats/safetensors.h"

#define CHECKPOINT_MANIFEST "manifest.json"
#define CHECKPOINT_VERSION 1

/* "master", "exp_avg", "exp_avg_sq" */
const char *checkpoint_part_name(engine_part part);

/* Elements first … first+count-1 of one part of weight `weight` of the model. */
typedef struct checkpoint_range {
    size_t weight;
    engine_part part;
    int64_t first, count;
    size_t file;
    const float *data; /* of an open manifest: mapped; maybe not aligned */
} checkpoint_range;

/* Name of a range's tensor in its file; SIFR_USAGE when it is too long. */
sifr_status checkpoint_tensor_name(const sifr_model *model, const checkpoint_range *range,
                                   char out[FORMATS_NAME_LIMIT], sifr_error *error) SIFR_MUST_CHECK;

/* Adds {"name", "bytes", "xxh3"} of directory/name, read back, to `files`. */
sifr_status checkpoint_add_file(json_t *files, const char *directory, const char *name,
                                sifr_error *error) SIFR_MUST_CHECK;

/* Sets "xxh3", writes the manifest and reads it back. */
sifr_status checkpoint_write_manifest(json_t *manifest, const char *directory,
                                      sifr_error *error) SIFR_MUST_CHECK;

/* A checkpoint whose files are all there, of the right size and checksum. Owns all it points to. */
typedef struct checkpoint_opened {
    json_t *json;
    int64_t step, updates;
    const json_t *agree, *notes, *state; /* into json */
    formats_safetensors *files;          /* by position in "files"; zeroed where no safetensors */
    size_t file_count;
} checkpoint_opened;

/* SIFR_FAILED names the file that is missing or damaged, and how. */
sifr_status checkpoint_open(const char *directory, checkpoint_opened *out,
                            sifr_error *error) SIFR_MUST_CHECK;
void checkpoint_close(checkpoint_opened *opened); /* harmless on a zeroed one */

/* The ranges of an open checkpoint, which must cover every part of every weight of the model once.
 * Free with free(). */
sifr_status checkpoint_ranges(const checkpoint_opened *opened, const sifr_model *model,
                              const char *directory, checkpoint_range **out, size_t *count,
                              sifr_error *error) SIFR_MUST_CHECK;

#endif
