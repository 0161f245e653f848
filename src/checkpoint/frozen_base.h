/* The base of a run: the model folder that its frozen weights come from, and what goes along with a
 * text model (engine_find_carried). Checkpoints of the run hold neither. Their manifests name the
 * folder, and the hash of each such tensor's bytes:
 *
 *     "base": {"path": "/models/llama",
 *              "weights": [{"weight": "lm_head.weight", "dtype": "BF16", "xxh3": "…"}, …],
 *              "carried": [{"name": "vision_tower.…", "dtype": "F32", "shape": [8, 3],
 *                           "xxh3": "…"}, …]}
 *
 * The hash is of the bytes in the file, so a folder that moved, or was cut into other shards, is
 * still the same base. model_weight.based marks these weights.
 */
#ifndef CHECKPOINT_FROZEN_BASE_H
#define CHECKPOINT_FROZEN_BASE_H

#include "checkpoint/manifest.h"

typedef struct checkpoint_base {
    char path[BASE_PATH_LENGTH];    /* absolute; "": there is no base */
    const formats_tensor **tensors; /* by weight; NULL: not of the base. Borrowed. */
    uint64_t *hashes;               /* by weight */
    const formats_tensor **carried; /* borrowed tensors, in the order of the folder */
    uint64_t *carried_hashes;
    size_t carried_count;
} checkpoint_base;

/* Finds the tensors of the model's `based` weights in an open folder, and those that go along, and
 * hashes them. The ranks share this work; all call it. Leaves a zeroed *out where there are none.
 * What goes along with an adapter is nothing: its files hold no model. */
sifr_status checkpoint_base_make(const char *path, const engine_folder *folder, comm_group *group,
                                 checkpoint_base *out, sifr_error *error) SIFR_MUST_CHECK;
void checkpoint_base_free(checkpoint_base *base); /* harmless on a zeroed one */

/* SIFR_FAILED if the files were changed since checkpoint_base_make. */
sifr_status checkpoint_base_check(const checkpoint_base *base, const sifr_model *model,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* Adds "base" to a manifest; nothing without a base. */
sifr_status checkpoint_base_add(json_t *manifest, const checkpoint_base *base,
                                const sifr_model *model, sifr_error *error) SIFR_MUST_CHECK;

/* SIFR_USAGE unless the checkpoint was made with this base (NULL: with none). */
sifr_status checkpoint_base_compare(const checkpoint_opened *opened, const checkpoint_base *base,
                                    const sifr_model *model, const char *directory,
                                    sifr_error *error) SIFR_MUST_CHECK;

/* Opens the base that a manifest names, for a model without marks: marks its `based` weights, finds
 * their tensors and compares the hashes. *weights is NULL if the manifest names no base; the caller
 * closes it. SIFR_FAILED, with the folder's name, if it is gone or has other values. */
sifr_status checkpoint_base_open(const checkpoint_opened *opened,
                                 const model_architecture *architecture, const char *directory,
                                 sifr_model *model, formats_weights **weights, checkpoint_base *out,
                                 sifr_error *error) SIFR_MUST_CHECK;

#endif
