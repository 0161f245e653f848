/* What the files of this folder share. */
#ifndef ENGINE_FOLDER_PRIVATE_H
#define ENGINE_FOLDER_PRIVATE_H

#include "engine/engine_private.h"

/* --- folder_tensors.c --- */

/* Whether a tensor of this name is no weight, and may be left: a buffer of old versions, or a
 * stored copy of a tied head. */
bool engine_is_leftover(const model_architecture *architecture, const sifr_model *model,
                        const char *name);

/* engine_visit_folder without the weights that `made` (NULL: none) marks. */
sifr_status engine_visit_present(const sifr_model *model, const model_architecture *architecture,
                                 const formats_weights *weights, const bool *made,
                                 engine_take_weight take, void *user,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* --- folder_carried.c --- */

/* Writes the tensor's bytes; and what declares it. */
sifr_status engine_copy_tensor(const formats_tensor *tensor, formats_safetensors_writer *writer,
                               sifr_error *error) SIFR_MUST_CHECK;
formats_tensor_spec engine_spec_of(const formats_tensor *tensor);

/* --- the others --- */

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

/* folder_task.c: which weights of the head are made. */
void engine_folder_say_made(const engine_folder *folder, const sifr_log *log);

#endif
