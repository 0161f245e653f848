/* The engine's members, for the files of this room and for tests that look inside. */
#ifndef ENGINE_ENGINE_PRIVATE_H
#define ENGINE_ENGINE_PRIVATE_H

#include "engine/handle.h"

/* Evaluation; made on first use. */
typedef struct engine_evaluator {
    plan_schedule *schedule;
    engine_executor *executor;
} engine_evaluator;

struct sifr_engine {
    const sifr_model *model;
    sifr_settings settings;
    device *dev;
    comm_group *group;
    engine_groups groups;  /* of the mesh; opened by engine_take */
    comm_group *own_group; /* the same if the engine closes it, otherwise NULL */
    plan_schedule *training;
    engine_executor *trainer;
    engine_evaluator evaluator, logits_evaluator;
    engine_swap *swap;     /* state on disk; NULL: none */
    engine_pinned pinned;  /* for it */
    engine_pieces *pieces; /* of a device that hides its memory; otherwise NULL */
    int32_t cleaned;       /* directories of killed runs that were removed */
    int64_t steps, updates;
    engine_loss_scaler scaler; /* SIFR_FP16 only; otherwise its scale stays 1 */
    optim_memory memory;
    bool shows_average; /* parameters are the average, of an optimizer that averages */
};

/* --- folders --- */

/* engine_visit_folder without the weights that `made` (NULL: none) marks. */
sifr_status engine_visit_present(const sifr_model *model, const model_architecture *architecture,
                                 const formats_weights *weights, const bool *made,
                                 engine_take_weight take, void *user,
                                 sifr_error *error) SIFR_MUST_CHECK;
/* magnitudes.c: of a fresh adapter (use_dora), from the folder's base and the first factors. */
sifr_status engine_fill_magnitudes(sifr_engine *engine, const engine_folder *folder, size_t index,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* adapter_folder.c: opens an adapter's values for a folder whose model has adapters; an adapter's
 * tensors to be written; and one file of such tensors, in their order. */
sifr_status engine_adapter_open(const char *directory, engine_folder *folder,
                                sifr_error *error) SIFR_MUST_CHECK;
sifr_status engine_adapter_stored(const sifr_model *model, engine_stored *out,
                                  sifr_error *error) SIFR_MUST_CHECK;
sifr_status engine_write_file(const char *directory, const char *name,
                              const formats_tensor_spec *specs, size_t count, formats_fill fill,
                              void *user, sifr_error *error) SIFR_MUST_CHECK;
void engine_folder_say_made(const engine_folder *folder, const sifr_log *log);

#endif
