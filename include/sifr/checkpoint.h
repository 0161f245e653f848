/* Checkpoints: all state that a run needs to go on, in OUTPUT/checkpoint-<step>/. They name weights
 * and ranges of their elements, not ranks, so any number of ranks at any stage loads what any other
 * saved. A checkpoint is whole and verified, or not there.
 *
 *     sifr_checkpoint_save(context, engine, "out", &options, &error);
 *     sifr_checkpoint_load(context, engine, "out", &options, &state, &error);
 *
 * Saving and loading are of all ranks of the engine, and take one thread at a time.
 */
#ifndef SIFR_CHECKPOINT_H
#define SIFR_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sifr/context.h"
#include "sifr/engine.h"
#include "sifr/loop.h"
#include "sifr/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Texts are read by the first rank when it saves, and by all when they load. */
typedef struct sifr_checkpoint_options {
    size_t size; /* sizeof(sifr_checkpoint_options) */
    /* The loop whose engine it is, so that the output can be exported as a model folder, and frozen
     * weights stay in the model folder that they come from; NULL: an engine of one's own model. */
    sifr_loop *loop;
    const char *state; /* of the caller's loop, a JSON object, which loading gives back; NULL: {} */
    const char *facts; /* a JSON object that must be equal when the state is loaded; NULL: {} */
    int64_t keep;      /* so many of the newest checkpoints stay; 0: all; below 0: SIFR_USAGE */
} sifr_checkpoint_options;

/* Saves as checkpoint-<steps of the engine>; carries out a delayed update first. SIFR_FAILED, such
 * as on a full disk: older checkpoints are unchanged, and the loop may go on. NULL for `options`:
 * zeros. */
SIFR_API sifr_status sifr_checkpoint_save(sifr_context *context, sifr_engine *engine,
                                          const char *output,
                                          const sifr_checkpoint_options *options,
                                          sifr_error *error) SIFR_MUST_CHECK;

/* Fills the engine from the newest intact checkpoint in `output`; damaged ones are logged. *state
 * is the JSON that was saved, and the caller's (sifr_text_free); NULL: there is no checkpoint, and
 * the engine is as it was. SIFR_USAGE names the fact that differs (one that sifr_train saved has
 * the facts of its run, which sifr_checkpoint_inspect shows); SIFR_FAILED where none is intact. */
SIFR_API sifr_status sifr_checkpoint_load(sifr_context *context, sifr_engine *engine,
                                          const char *output,
                                          const sifr_checkpoint_options *options, char **state,
                                          sifr_error *error) SIFR_MUST_CHECK;

/* --- of one process, without an engine --- */

/* The steps of the checkpoints in `output`, newest first: the first `capacity` of them into
 * `steps`, and how many there are. None is no error. */
SIFR_API sifr_status sifr_checkpoint_list(const char *output, int64_t *steps, size_t capacity,
                                          size_t *count, sifr_error *error) SIFR_MUST_CHECK;

/* What a checkpoint says of itself, as a JSON object: "path", "step", "updates", "state", "facts",
 * "types", "files" with their bytes. `path` is a checkpoint, or an output: its newest one. `verify`
 * reads all files and compares their checksums. SIFR_FAILED for what is no whole checkpoint. *out
 * is the caller's: sifr_text_free. */
SIFR_API sifr_status sifr_checkpoint_inspect(const char *path, bool verify, char **out,
                                             sifr_error *error) SIFR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
