/* The engine as the rooms below see it beside its public interface: what it holds, its state by
 * weight, model folders. */
#ifndef ENGINE_HANDLE_H
#define ENGINE_HANDLE_H

#include "engine/executor/executor.h"
#include "engine/state/loss_scaler.h"
#include "engine/store/swap.h"
#include "formats/weights.h"
#include "model/registry.h"
#include "plan/pass/passes.h"
#include "sifr/engine.h"

/* --- what an engine holds; the engine's own, as long as it lives --- */

const sifr_model *engine_model(const sifr_engine *engine);
const sifr_settings *engine_settings(const sifr_engine *engine);
comm_group *engine_group(const sifr_engine *engine);
device *engine_device(const sifr_engine *engine);
const plan_schedule *engine_schedule(const sifr_engine *engine); /* of a training step */
engine_executor *engine_trainer(const sifr_engine *engine);      /* which runs it */
const engine_swap *engine_state_file(const sifr_engine *engine); /* NULL: no state is on disk */
const engine_pinned *engine_pinned_memory(const sifr_engine *engine); /* for that file */
int32_t engine_cleaned(const sifr_engine *engine); /* directories of killed runs, removed */
const engine_loss_scaler *engine_scaler(const sifr_engine *engine);

/* The counts and the loss scale of a checkpoint, when a run goes on from it. */
void engine_restore(sifr_engine *engine, int64_t steps, int64_t updates,
                    const engine_loss_scaler *scaler);

/* The parts of a weight's state. */
typedef enum engine_part {
    ENGINE_MASTER,
    ENGINE_MOMENT1,
    ENGINE_MOMENT2,
    ENGINE_PARTS
} engine_part;

/* The engine over the ranks of `group`, which is borrowed: it outlives the engine. All ranks call
 * it; where one has no room for its plan, in memory or on disk, all fail before any has taken any.
 */
sifr_status engine_create(const sifr_model *model, const sifr_settings *settings, comm_group *group,
                          sifr_engine **out, sifr_error *error) SIFR_MUST_CHECK;

/* The same in two calls, for whoever has more to check between them: planned, and known to fit;
 * then with its memory and its files. All ranks call both; one that is not taken is freed, too. The
 * strings of `settings` must live until then. */
sifr_status engine_plan(const sifr_model *model, const sifr_settings *settings, comm_group *group,
                        sifr_engine **out, sifr_error *error) SIFR_MUST_CHECK;
sifr_status engine_take(sifr_engine *engine, sifr_error *error) SIFR_MUST_CHECK;

/* The same on a device of the caller's choice, which the engine closes, also where this fails. */
sifr_status engine_create_on(device *dev, const sifr_model *model, const sifr_settings *settings,
                             comm_group *group, sifr_engine **out,
                             sifr_error *error) SIFR_MUST_CHECK;

/* Carries out the update of the last step where that was left to the next one
 * (plan_pass_delay_update). Before anything looks at state, writes it, or uses idle memory; what a
 * caller may see does not change by it. All ranks call it. */
sifr_status engine_settle(const sifr_engine *engine, sifr_error *error) SIFR_MUST_CHECK;

/* The type in which a part is kept: FP32 or BF16. */
base_dtype engine_part_type(const sifr_engine *engine, engine_part part);

/* This rank's values of weight `index` of the model are elements *first … *first + *count - 1
 * of its rows x columns: all of them where the part is no slice. False where it has none. */
bool engine_range(const sifr_engine *engine, size_t index, engine_part part, int64_t *first,
                  int64_t *count);

/* Whether the host reaches all state in place: nothing is on disk or in a device's own memory. */
bool engine_in_place(const sifr_engine *engine);

/* Elements first … first + count - 1 of that range, in the part's type: in place, or, where the
 * host does not reach them, in `room` (count elements); *out says where, until the next step or
 * write. */
sifr_status engine_view(const sifr_engine *engine, size_t index, engine_part part, int64_t first,
                        int64_t count, void *room, const void **out,
                        sifr_error *error) SIFR_MUST_CHECK;

/* The same as FP32 values: in `room` (count values) where they are kept otherwise, too. */
sifr_status engine_view_fp32(const sifr_engine *engine, size_t index, engine_part part,
                             int64_t first, int64_t count, float *room, const float **out,
                             sifr_error *error) SIFR_MUST_CHECK;

/* Overwrites them with values of the part's type at any alignment. engine_refresh afterwards. */
sifr_status engine_write(sifr_engine *engine, size_t index, engine_part part, int64_t first,
                         int64_t count, const void *values, sifr_error *error) SIFR_MUST_CHECK;

/* The values of engine_range where they are FP32 in the host's memory, the engine's own; else NULL.
 */
float *engine_slice(const sifr_engine *engine, size_t index, engine_part part, int64_t *first,
                    int64_t *count);

/* The same on one rank, where all of it is here. */
float *engine_state(const sifr_engine *engine, size_t index, engine_part part);

/* Whether ranks hold only slices of this part of a weight. */
bool engine_is_cut(const sifr_engine *engine, size_t index, engine_part part);

/* The elements of a weight that rank `rank` answers for, of any part: its slice of the flat
 * parameter, which it holds also where the part is whole. Over all ranks each element once. */
void engine_share(const sifr_engine *engine, size_t index, int32_t rank, int64_t *first,
                  int64_t *count);

/* The elements of a weight that this rank holds in any form: what it must read or work out at the
 * start. */
void engine_held(const sifr_engine *engine, size_t index, int64_t *first, int64_t *count);

/* Elements first … first + count - 1 of a weight's part, as FP32 values, into `out` of every rank,
 * from those that hold them. All ranks call it with the same range. */
sifr_status engine_collect(const sifr_engine *engine, size_t index, engine_part part, int64_t first,
                           int64_t count, float *out, sifr_error *error) SIFR_MUST_CHECK;

/* Puts elements first … first + count - 1 of a weight wherever this rank holds them: in its master
 * weights and in what kernels read. */
sifr_status engine_put(sifr_engine *engine, size_t index, int64_t first, int64_t count,
                       const float *values, sifr_error *error) SIFR_MUST_CHECK;
/* Puts what `make` gives for all elements of a weight that this rank holds. `make` writes elements
 * first … first + count - 1 to `values`; it is called by several threads at once. */
typedef void (*engine_values)(const void *user, size_t index, int64_t first, int64_t count,
                              float *values);
sifr_status engine_fill(sifr_engine *engine, size_t index, engine_values make, const void *user,
                        sifr_error *error) SIFR_MUST_CHECK;

/* Brings what kernels read up to date after master weights were written through engine_write. All
 * ranks call it. */
sifr_status engine_refresh(sifr_engine *engine, sifr_error *error) SIFR_MUST_CHECK;

/* What a plan of them is made of: rank and world size are those of `group`, NULL: one rank. */
plan_settings engine_plan_settings(const sifr_settings *settings, const comm_group *group);

/* Ids within the vocabulary, labels within it or negative; SIFR_FAILED names the first that is not.
 */
sifr_status engine_check_ids(const sifr_model *model, const int32_t *tokens, const int32_t *labels,
                             int64_t count, sifr_error *error) SIFR_MUST_CHECK;

/* Bytes that new work can take here; 0 where the system does not say. */
uint64_t engine_memory_room(void);

/* Bytes that each of `ranks` ranks of this host can take: its share of that, and no more than the
 * limits of a process leave. */
uint64_t engine_rank_room(int32_t ranks);

/* SIFR_NO_MEMORY, with the numbers, where the blocks of `ranks` on this host take more, all
 * together, than the host has left, or one of them more than the limits of a process leave.
 * `schedule` is that of one of them; they are as large as each other but for some padding. */
sifr_status engine_check_memory(const plan_schedule *schedule, int32_t ranks,
                                sifr_error *error) SIFR_MUST_CHECK;

/* SIFR_NO_MEMORY, with the numbers, on all ranks alike, where those of a host are to have more in
 * files below `parent`, all together, than is free there: `bytes` is this rank's. All ranks call
 * it. What dead runs left there is removed first: *cleaned directories. */
sifr_status engine_check_disk(comm_group *group, const char *parent, int64_t bytes,
                              int32_t *cleaned, sifr_error *error) SIFR_MUST_CHECK;

/* What there is too little of, where something ends with SIFR_NO_MEMORY. */
typedef enum engine_lack { ENGINE_LACK_MEMORY, ENGINE_LACK_DISK } engine_lack;

/* Adds what a user of the library may do to the message of SIFR_NO_MEMORY; returns `status`. What
 * does not fit on disk says itself what to do. */
sifr_status engine_advise(plan_mode mode, engine_lack lack, sifr_status status,
                          sifr_error *error) SIFR_MUST_CHECK;

/* --- model folders: engine_folder.c --- */

/* A model folder, open: its config, its description and its mapped weights. */
typedef struct engine_folder {
    formats_model_config config;
    const model_architecture *architecture;
    sifr_model *model;
    formats_weights *weights;
} engine_folder;

/* Reads and checks everything but the values. */
sifr_status engine_folder_open(const char *path, engine_folder *out,
                               sifr_error *error) SIFR_MUST_CHECK;
/* Says what transformers too only warns of: tensors that the model has none of, a wrong size in the
 * index. */
void engine_folder_warn(const engine_folder *folder, const sifr_log *log);
void engine_folder_close(engine_folder *folder); /* harmless on a zeroed one */

/* Checks that a folder's tensors are the model's: shapes, none missing. Then calls `take` for each
 * weight. */
typedef sifr_status (*engine_take_weight)(void *user, size_t index, const formats_tensor *tensor,
                                          sifr_error *error);
sifr_status engine_visit_folder(const sifr_model *model, const model_architecture *architecture,
                                const formats_weights *weights, engine_take_weight take, void *user,
                                sifr_error *error) SIFR_MUST_CHECK;

/* Fills the engine from a folder. */
sifr_status engine_load_folder(sifr_engine *engine, const model_architecture *architecture,
                               const formats_weights *weights, sifr_error *error) SIFR_MUST_CHECK;

/* A tensor of a model folder that is to be written: the weight that it holds, its name and its type
 * there. */
typedef struct engine_stored_tensor {
    size_t weight;
    const char *name;
    base_dtype dtype;
} engine_stored_tensor;

typedef struct engine_stored {
    engine_stored_tensor *tensors;
    size_t count;
} engine_stored;

/* In the names and types of `like` (the folder that the weights came from), or, where that is NULL,
 * under the weights' own names in `dtype`. A tied head that `like` stores is stored again. The
 * names belong to `like` or to the model. */
sifr_status engine_stored_make(const sifr_model *model, const model_architecture *architecture,
                               const formats_weights *like, base_dtype dtype, engine_stored *out,
                               sifr_error *error) SIFR_MUST_CHECK;
void engine_stored_free(engine_stored *stored); /* harmless on a zeroed one */

/* Writes tensors into an existing folder. `give` is asked for elements first … first + count - 1 of
 * a weight, at most engine_piece_elements() of them, front to back. */
typedef sifr_status (*engine_give_values)(void *user, size_t weight, int64_t first, int64_t count,
                                          const float **out, sifr_error *error);
int64_t engine_piece_elements(void);
sifr_status engine_write_folder(const sifr_model *model, const engine_stored *stored,
                                engine_give_values give, void *user, const char *directory,
                                sifr_error *error) SIFR_MUST_CHECK;

/* Writes the engine's weights into an existing folder, in the names and types of `like` (the folder
 * they came from), or, where that is NULL, under their own names in `dtype`. All ranks call it, the
 * first one writes, and all return how that went. Weights of which ranks hold slices travel in
 * pieces of a few MiB: no rank ever has a whole unit. `like` and `directory` are read by the first
 * rank only. */
sifr_status engine_save_folder(const sifr_engine *engine, const model_architecture *architecture,
                               const formats_weights *like, base_dtype dtype, const char *directory,
                               sifr_error *error) SIFR_MUST_CHECK;

#endif
