/* Checkpoints: all state that a run needs to continue, in OUTPUT/checkpoint-<step>/.
 *
 *     state-0000I-of-0000N.safetensors   tensors: "master/NAME", "exp_avg/NAME",
 *                                        "exp_avg_sq/NAME", in the types that the engine keeps
 *                                        them in; a piece of a weight that begins at its
 *                                        element F has "@F" behind the name, one of a block of
 *                                        rows and columns "[a:b,c:d]"
 *     trainer_state.json                 history, in the form that transformers writes
 *     manifest.json                      written last: see manifest.h
 *
 * The layout names weights and ranges of their elements, not ranks, so a checkpoint saved by any
 * number of ranks at any stage can be loaded by any other number at any other stage. Each rank
 * writes its own slices into files of its own, and reads only the data that it holds. A checkpoint
 * is written under a temporary name, read back, compared with the engines' memory, synced and
 * renamed, so it is either complete and verified or absent. OUTPUT/latest then names it. A
 * checkpoint is never changed in place.
 *
 * Saving and loading are collective over the engine's group. Rank 0 makes, renames and removes
 * folders and writes to the log. All ranks return the same status and message. OUTPUT is one folder
 * that all ranks see.
 */
#ifndef CHECKPOINT_CHECKPOINT_H
#define CHECKPOINT_CHECKPOINT_H

#include <jansson.h>
#include <stdint.h>

#include "base/json.h"
#include "engine/handle.h"

/* What the caller stores with the engine's own state: JSON objects, borrowed. Rank 0's record is
 * used; the other ranks may pass NULL. */
typedef struct checkpoint_record {
    const json_t *must_match; /* must be equal when the run resumes; a difference is refused */
    const json_t *may_differ; /* may differ, but results then differ too; a difference is logged */
    const json_t *state;      /* returned by checkpoint_load */
    const json_t *trainer;    /* trainer_state.json; NULL: no such file */
    const base_json_list *history; /* its list; NULL: none */
    const json_t *tensors; /* tensors of the model folder to be written: checkpoint_tensors() */
    const struct checkpoint_base *base; /* of frozen weights (frozen_base.h); NULL: none */
    const json_t
        *defaults;       /* of may_differ: the values of fields that one side lacks; NULL: none */
    /* Puts may_differ of a checkpoint and of this run, copies, into the words that are shown, and
     * takes out what follows from another difference; NULL: they are shown as they are. False:
     * memory ran out. */
    bool (*words)(json_t *was, json_t *now);
    const char *refused; /* who has the other must_match, in a refusal; NULL: this run */
    const char *own;     /* of must_match the one that this run has all the same; NULL: none */
} checkpoint_record;

/* The tensors that an export of the checkpoint has to write: a new array that the caller owns, or
 * NULL if memory ran out. */
json_t *checkpoint_tensors(const sifr_model *model, const engine_stored *stored);

typedef struct checkpoint_settings {
    uint64_t file_bytes; /* approximate limit in bytes for a file of state; 0: 4 GiB */
    int64_t keep;        /* number of newest checkpoints to keep; 0: all */
    int64_t beside;      /* bytes of disk space to leave for the trained model */
} checkpoint_settings;

/* Saves the engines' state as checkpoint-<steps of the engine>, then removes those beyond
 * settings->keep (one that cannot be removed is logged). On failure nothing is left behind and
 * older checkpoints are unchanged. After any failure except SIFR_LOST_RANK the ranks are still in
 * step and training may continue (after SIFR_FAILED on a full disk, say). */
sifr_status checkpoint_save(const sifr_engine *engine, const char *output,
                            const checkpoint_record *record, const checkpoint_settings *settings,
                            const sifr_log *log, sifr_error *error) SIFR_MUST_CHECK;

/* Fills the engines from the newest intact checkpoint in `output`. Damaged ones are logged, each
 * with the file and the reason. The ranks share the work of verifying. *state is a new object on
 * each rank, which the caller owns, or NULL if there is no checkpoint. SIFR_USAGE names the field
 * of record->must_match that differs. SIFR_FAILED if there are checkpoints but none is intact, or
 * if a rank does not see the same files as rank 0. On failure the engine is unchanged, unless a
 * rank is lost. */
sifr_status checkpoint_load(sifr_engine *engine, const char *output,
                            const checkpoint_record *record, json_t **state, const sifr_log *log,
                            sifr_error *error) SIFR_MUST_CHECK;

/* The manifest (manifest.h) of the newest checkpoint in `output` that has one that can be read: a
 * new object, or NULL if there is none. For what a resumed run must know before it has an engine;
 * that the checkpoint is intact is left to checkpoint_load. Of one rank. */
sifr_status checkpoint_peek(const char *output, json_t **manifest,
                            sifr_error *error) SIFR_MUST_CHECK;

/* Steps of the checkpoints in `output`, newest first; free with free(). None is no error. */
sifr_status checkpoint_list(const char *output, int64_t **steps, size_t *count,
                            sifr_error *error) SIFR_MUST_CHECK;

/* Removes leftovers of killed runs: names in `output` that contain ".tmp-". */
sifr_status checkpoint_clean(const char *output, sifr_error *error) SIFR_MUST_CHECK;

#endif
