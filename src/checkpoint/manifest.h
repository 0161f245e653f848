/* manifest.json of a checkpoint:
 *
 *     {"format": "sifr checkpoint", "version": 1, "step": 40, "updates": 40,
 *      "agree": {…}, "notes": {…}, "state": {…},
 *      "types": {"master": "fp32", "exp_avg": "bf16", "exp_avg_sq": "bf16"},
 *      "tensors": [{"name": "wte.weight", "dtype": "BF16", "weight": "transformer.wte.weight"}, …],
 *      "loss_scaler": {"scale": 65536.0, "iteration": 40, "last_overflow": 3, "hysteresis": 2},
 *      "files": [{"name": "state-00001-of-00001.safetensors", "bytes": 1234, "xxh3": "…"}, …],
 *      "ranges": [{"weight": "wte.weight", "part": "master", "first": 0, "count": 4096,
 *                  "file": 0, "tensor": "master/wte.weight"}, …],
 *      "xxh3": "…"}
 *
 * "tensors" are those of the model folder that the run ends with. "loss_scaler" is there in fp16
 * with a dynamic scale only; without "types" all are fp32. The last is the hash of the manifest
 * itself without it, keys sorted, no blanks. */
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
    const char *tensor; /* of an open manifest: its name in the file, in the manifest's JSON */
} checkpoint_range;

/* Whether a weight has this part: units that are frozen as a whole have no moments. */
bool checkpoint_has_part(const sifr_model *model, size_t weight, engine_part part);

/* Name of a range's tensor in its file; SIFR_USAGE when it is too long. */
sifr_status checkpoint_tensor_name(const sifr_model *model, const checkpoint_range *range,
                                   char out[FORMATS_NAME_LIMIT], sifr_error *error) SIFR_MUST_CHECK;

/* --- writing --- */

/* Size and hash of directory/name as it reads now. */
typedef struct checkpoint_sum {
    uint64_t bytes, hash;
} checkpoint_sum;

sifr_status checkpoint_sum_file(const char *directory, const char *name, checkpoint_sum *out,
                                sifr_error *error) SIFR_MUST_CHECK;

/* Adds {"name", "bytes", "xxh3"} to `files`. */
sifr_status checkpoint_add_file(json_t *files, const char *name, const checkpoint_sum *sum,
                                sifr_error *error) SIFR_MUST_CHECK;

/* Adds {"weight", "part", "first", "count", "file", "tensor"} to `list`. */
sifr_status checkpoint_add_range(json_t *list, const sifr_model *model,
                                 const checkpoint_range *range, sifr_error *error) SIFR_MUST_CHECK;

/* "loss_scaler" of an fp16 engine with a dynamic scale; nothing for others. */
sifr_status checkpoint_add_scaler(json_t *manifest, const sifr_engine *engine,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* "types" of the engine's parts. */
sifr_status checkpoint_add_types(json_t *manifest, const sifr_engine *engine,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* Sets "xxh3", writes the manifest and reads it back. */
sifr_status checkpoint_write_manifest(json_t *manifest, const char *directory,
                                      sifr_error *error) SIFR_MUST_CHECK;

/* --- reading --- */

/* A manifest that is whole by its own hash. Owns all it points to. */
typedef struct checkpoint_opened {
    json_t *json;
    char hash[17]; /* of the manifest */
    int64_t step, updates;
    const json_t *agree, *notes, *state; /* into json */
    size_t file_count;
} checkpoint_opened;

/* SIFR_FAILED says what is wrong in it. No other file is looked at. */
sifr_status checkpoint_open(const char *directory, checkpoint_opened *out,
                            sifr_error *error) SIFR_MUST_CHECK;
void checkpoint_close(checkpoint_opened *opened); /* harmless on a zeroed one */

/* Whether file `index` is there, of the size that the manifest names (SIFR_FAILED: how not), and,
 * with `whole`, of its checksum too; for that all of it is read. */
sifr_status checkpoint_check_file(const checkpoint_opened *opened, size_t index,
                                  const char *directory, bool whole,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* SIFR_USAGE where the engine keeps a part in another type than the manifest names. */
sifr_status checkpoint_check_types(const checkpoint_opened *opened, const sifr_engine *engine,
                                   const char *directory, sifr_error *error) SIFR_MUST_CHECK;

/* The types of the parts as the manifest names them; SIFR_FAILED for one that is not built. */
sifr_status checkpoint_read_types(const checkpoint_opened *opened, const char *directory,
                                  base_dtype out[ENGINE_PARTS], sifr_error *error) SIFR_MUST_CHECK;

/* Opens a file of state and checks that it has the tensors of these ranges, in these types. */
sifr_status checkpoint_open_file(const checkpoint_opened *opened,
                                 const base_dtype types[ENGINE_PARTS],
                                 const checkpoint_range *ranges, size_t count,
                                 const char *directory, formats_safetensors *out,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* The loss scaler; that of the engine where the manifest has none, or the scale is fixed. */
sifr_status checkpoint_read_scaler(const checkpoint_opened *opened, const sifr_engine *engine,
                                   const char *directory, engine_loss_scaler *out,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* "tensors" of an open manifest, which owns the names: the weights of the model, each once and a
 * tied head perhaps again. count 0: a manifest from before there were any. Free with
 * engine_stored_free. */
sifr_status checkpoint_read_tensors(const checkpoint_opened *opened, const sifr_model *model,
                                    const char *directory, engine_stored *out,
                                    sifr_error *error) SIFR_MUST_CHECK;

/* The ranges of an open manifest, by file; they must cover every part of every weight of the model
 * once. Free with free(). */
sifr_status checkpoint_ranges(const checkpoint_opened *opened, const sifr_model *model,
                              const char *directory, checkpoint_range **out, size_t *count,
                              sifr_error *error) SIFR_MUST_CHECK;

/* The ranges of master weights alone, by weight and place; which parts were trained does not
 * matter.
 */
sifr_status checkpoint_master_ranges(const checkpoint_opened *opened, const sifr_model *model,
                                     const char *directory, checkpoint_range **out, size_t *count,
                                     sifr_error *error) SIFR_MUST_CHECK;

#endif
