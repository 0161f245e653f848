/* Checkpoints: everything that the future of a run depends on, in OUTPUT/checkpoint-<step>/.
 *
 *     state-0000I-of-0000N.safetensors   tensors: "master/NAME", "exp_avg/NAME",
 *                                        "exp_avg_sq/NAME", in the types that the engine keeps
 *                                        them in; a piece of a weight that begins at its
 *                                        element F has "@F" behind the name
 *     trainer_state.json                 history, in the form that transformers writes
 *     manifest.json                      written last: see manifest.h
 *
 * The layout names weights and ranges of their elements, not ranks: what any number of ranks saved
 * at any stage, any other number loads at any other. Each rank writes the slices that it answers
 * for, into files of its own, and reads only what it holds. A checkpoint is made under a temporary
 * name, read back, compared with the engines' memory, synced and renamed: it is complete and
 * verified, or it is not there. OUTPUT/latest then names it. A checkpoint is never changed in
 * place.
 *
 * Saving and loading are collective over the engine's group: all ranks call them, rank 0 makes,
 * names and removes folders and writes to the log, and all return the same status and message.
 * OUTPUT is one folder that all ranks see. */
#ifndef CHECKPOINT_CHECKPOINT_H
#define CHECKPOINT_CHECKPOINT_H

#include <jansson.h>
#include <stdint.h>

#include "engine/handle.h"

/* What the caller keeps beside the engine's own state: JSON objects, borrowed. Rank 0's are used,
 * the other ranks may pass NULL for a record. */
typedef struct checkpoint_record {
    const json_t *agree;   /* must be the same when the run goes on: a difference is refused */
    const json_t *notes;   /* may differ, the bits then differ too: a difference is said */
    const json_t *state;   /* handed back by checkpoint_load */
    const json_t *trainer; /* trainer_state.json */
    const json_t *tensors; /* of the model folder that the weights become: checkpoint_tensors() */
} checkpoint_record;

/* A new array that the caller owns, or NULL when memory ran out: what an export of the checkpoint
 * has to write. */
json_t *checkpoint_tensors(const sifr_model *model, const engine_stored *stored);

typedef struct checkpoint_settings {
    uint64_t file_bytes; /* a file of state holds about so many bytes at most; 0: 4 GiB */
    int64_t keep;        /* the newest so many checkpoints stay; 0: all */
    int64_t beside;      /* bytes of disk that must be left for the trained model */
} checkpoint_settings;

/* Saves the engines' state as checkpoint-<steps of the engine>, then removes those beyond
 * settings->keep (one that cannot be removed is said through `log`). On failure nothing is left
 * behind and older checkpoints are as they were; but for SIFR_LOST_RANK the ranks are still in step
 * and training may go on (SIFR_FAILED: a full disk, say). */
sifr_status checkpoint_save(const sifr_engine *engine, const char *output,
                            const checkpoint_record *record, const checkpoint_settings *settings,
                            const sifr_log *log, sifr_error *error) SIFR_MUST_CHECK;

/* Fills the engines from the newest checkpoint in `output` that is whole; those that are not are
 * said through `log`, each with the file that failed and why. The ranks share the work of
 * verifying. *state is a new object that the caller owns, on each rank, or NULL where there is no
 * checkpoint at all. SIFR_USAGE names what of record->agree differs; SIFR_FAILED where checkpoints
 * are there and none is whole, or where a rank does not see what rank 0 sees. On failure, a lost
 * rank apart, the engine is as it was. */
sifr_status checkpoint_load(sifr_engine *engine, const char *output,
                            const checkpoint_record *record, json_t **state, const sifr_log *log,
                            sifr_error *error) SIFR_MUST_CHECK;

/* Steps of the checkpoints in `output`, newest first; free with free(). None is no error. */
sifr_status checkpoint_list(const char *output, int64_t **steps, size_t *count,
                            sifr_error *error) SIFR_MUST_CHECK;

/* Removes what killed runs left: names in `output` with ".tmp-" in them. */
sifr_status checkpoint_clean(const char *output, sifr_error *error) SIFR_MUST_CHECK;

#endif
