/* manifest.json of a checkpoint:
 *
 *     {"format": "sifr checkpoint", "version": 2, "step": 40, "updates": 40,
 *      "agree": {…}, "notes": {…}, "state": {…},
 *      "types": {"master": "fp32", "exp_avg": "bf16", "exp_avg_sq": "bf16"},
 *      "tensors": [{"name": "wte.weight", "dtype": "BF16", "weight": "transformer.wte.weight"}, …],
 *      "loss_scaler": {"scale": 65536.0, "iteration": 40, "last_overflow": 3, "hysteresis": 2},
 *      "files": [{"name": "state-00001-of-00001.safetensors", "bytes": 1234, "xxh3": "…"}, …],
 *      "ranges": [{"weight": "wte.weight", "part": "master", "first": 0, "count": 4096,
 *                  "file": 0, "tensor": "master/wte.weight"},
 *                 {"weight": "up.weight", "part": "master", "rows": [0, 64], "columns": [32, 64],
 *                  "first": 0, "count": 2048, "file": 0, "tensor": "master/up.weight[0:64,32:64]"},
 *                 …],
 *      "xxh3": "…"}
 *
 * "first" and "count" are of the weight's elements, row by row, or of those of a block: rows a …
 * b-1 and columns c … d-1, where a range has "rows": [a, b] and "columns": [c, d]
 * (weight_blocks.h). A manifest without blocks is written as version 1, which knew none; so far
 * runs cut no weight into blocks. Both versions are read. A range has "dtype" where its type is not
 * that of its part in "types": frozen weights have the training type; "base" names the folder of
 * those that are not in the checkpoint (frozen_base.h). "tensors" are those of the trained model's
 * folder. "loss_scaler" exists only in fp16 with a dynamic scale, and "optimizer": {"lr_max":
 * 0.001, "weight_sum": 1.5} only where an optimizer remembers that. Without "types" all parts are
 * fp32, and those of Adam. The last key is the hash of the manifest without that key, with sorted
 * keys and no blanks.
 */
#ifndef CHECKPOINT_MANIFEST_H
#define CHECKPOINT_MANIFEST_H

#include "checkpoint/checkpoint.h"
#include "formats/safetensors/safetensors.h"

#define CHECKPOINT_MANIFEST "manifest.json"
#define CHECKPOINT_VERSION 2 /* of manifests with blocks */

/* Elements of one part of weight `weight` of the model. A part of rows or columns counts as the
 * first elements of the whole weight (engine_part_elements). */
typedef struct checkpoint_range {
    size_t weight;
    engine_part part;
    const char *name; /* of the part: "master", "exp_avg" */
    model_span span;
    size_t file;
    int64_t each;       /* elements for each value */
    base_dtype dtype;   /* in the file */
    const char *tensor; /* of an open manifest: the tensor's name in the file; borrowed from the
                           manifest's JSON */
} checkpoint_range;

/* Whether a range's block is the whole of its weight. */
static inline bool checkpoint_is_whole(const sifr_model *model, const checkpoint_range *range) {
    model_block whole = model_whole(&model->weights[range->weight]);
    return model_same_block(&range->span.block, &whole);
}

/* How many values `elements` elements of a range have, the first of which begins a value. */
static inline int64_t checkpoint_values(const checkpoint_range *range, int64_t elements) {
    return (elements + range->each - 1) / range->each;
}

/* The name of a range's tensor in its file; SIFR_USAGE if it is too long. */
sifr_status checkpoint_tensor_name(const sifr_model *model, const checkpoint_range *range,
                                   char out[FORMATS_NAME_LIMIT], sifr_error *error) SIFR_MUST_CHECK;

/* --- writing --- */

/* The current size and hash of directory/name. */
typedef struct checkpoint_sum {
    uint64_t bytes, hash;
} checkpoint_sum;

sifr_status checkpoint_sum_file(const char *directory, const char *name, checkpoint_sum *out,
                                sifr_error *error) SIFR_MUST_CHECK;

/* Adds {"name", "bytes", "xxh3"} to `files`. */
sifr_status checkpoint_add_file(json_t *files, const char *name, const checkpoint_sum *sum,
                                sifr_error *error) SIFR_MUST_CHECK;

/* Adds {"weight", "part", "first", "count", "file", "tensor"} to `list`, "dtype" if needed, "rows"
 * and "columns" of a block that is not the whole weight, and "each" where a value belongs to
 * several elements. */
sifr_status checkpoint_add_range(json_t *list, const sifr_engine *engine,
                                 const checkpoint_range *range, sifr_error *error) SIFR_MUST_CHECK;

/* Adds "loss_scaler" for an fp16 engine with a dynamic scale; nothing for other engines. */
sifr_status checkpoint_add_scaler(json_t *manifest, const sifr_engine *engine,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* Adds "optimizer" for an optimizer that remembers; nothing for others. */
sifr_status checkpoint_add_memory(json_t *manifest, const sifr_engine *engine,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* Adds "types" for the engine's parts. */
sifr_status checkpoint_add_types(json_t *manifest, const sifr_engine *engine,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* Sets "xxh3", writes the manifest and reads it back. */
sifr_status checkpoint_write_manifest(json_t *manifest, const char *directory,
                                      sifr_error *error) SIFR_MUST_CHECK;

/* --- reading --- */

/* A manifest that matches its own hash. Owns everything it points to. */
typedef struct checkpoint_opened {
    json_t *json;
    char hash[17]; /* of the manifest */
    int64_t version, step, updates;
    const json_t *must_match, *may_differ, *state; /* into json */
    size_t file_count;
} checkpoint_opened;

/* SIFR_FAILED if it is wrong, with the reason. Reads no other file. */
sifr_status checkpoint_open(const char *directory, checkpoint_opened *out,
                            sifr_error *error) SIFR_MUST_CHECK;
void checkpoint_close(checkpoint_opened *opened); /* harmless on a zeroed one */

/* SIFR_FAILED unless file `index` exists and has the size in the manifest. With `whole`, reads all
 * of it and compares the checksum too. */
sifr_status checkpoint_check_file(const checkpoint_opened *opened, size_t index,
                                  const char *directory, bool whole,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* SIFR_USAGE if the engine has other parts than the manifest names, or keeps one in another type.
 */
sifr_status checkpoint_check_types(const checkpoint_opened *opened, const sifr_engine *engine,
                                   const char *directory, sifr_error *error) SIFR_MUST_CHECK;

/* SIFR_USAGE if the states are not those of this optimizer; the message ends with "which `whose`;
 * `remedy`". */
sifr_status checkpoint_check_states(const checkpoint_opened *opened, const optim_row *optimizer,
                                    const char *directory, const char *whose, const char *remedy,
                                    sifr_error *error) SIFR_MUST_CHECK;

/* Opens a file of state and checks that it has the tensors of these ranges. */
sifr_status checkpoint_open_file(const checkpoint_opened *opened, const checkpoint_range *ranges,
                                 size_t count, const char *directory, formats_safetensors *out,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* The same for those of `count` ranges that lie in file `file`, if there are any; with `whole` the
 * file's checksum is compared first. */
sifr_status checkpoint_open_ranges(const checkpoint_opened *opened, const checkpoint_range *ranges,
                                   size_t count, size_t file, const char *directory, bool whole,
                                   formats_safetensors *out, sifr_error *error) SIFR_MUST_CHECK;

/* Reads the loss scaler; keeps the engine's if the manifest has none or the scale is fixed. */
sifr_status checkpoint_read_scaler(const checkpoint_opened *opened, const sifr_engine *engine,
                                   const char *directory, engine_loss_scaler *out,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* Reads "optimizer" for an optimizer that remembers; zeros for others. */
sifr_status checkpoint_read_memory(const checkpoint_opened *opened, const sifr_engine *engine,
                                   const char *directory, optim_memory *out,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* "tensors" of an open manifest, which owns the names: each weight of the model once, and possibly
 * a tied head again. count 0: an older manifest without tensors. Free with engine_stored_free. */
sifr_status checkpoint_read_tensors(const checkpoint_opened *opened, const sifr_model *model,
                                    const char *directory, engine_stored *out,
                                    sifr_error *error) SIFR_MUST_CHECK;

/* The ranges of an open manifest, by file. They must cover every part of every weight of the
 * engine's model exactly once. Free with free(). */
sifr_status checkpoint_ranges(const checkpoint_opened *opened, const sifr_engine *engine,
                              const char *directory, checkpoint_range **out, size_t *count,
                              sifr_error *error) SIFR_MUST_CHECK;

/* The state that is the average of a weight, in ranges. */
#define CHECKPOINT_AVERAGE "ema"

/* The ranges of master weights only, by weight and position, or with `average` those of the
 * averages of the weights in their place; does not depend on which weights were trained. */
sifr_status checkpoint_master_ranges(const checkpoint_opened *opened, const sifr_model *model,
                                     bool average, const char *directory, checkpoint_range **out,
                                     size_t *count, sifr_error *error) SIFR_MUST_CHECK;

/* The ranges of all parts of `optimizer`, by weight, part and position. A weight has all its states
 * or, where it was frozen, none. */
sifr_status checkpoint_state_ranges(const checkpoint_opened *opened, const sifr_model *model,
                                    const optim_row *optimizer, const char *directory,
                                    checkpoint_range **out, size_t *count,
                                    sifr_error *error) SIFR_MUST_CHECK;

#endif
