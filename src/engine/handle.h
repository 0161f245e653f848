/* The engine's interface for checkpoint/, train/ and cli/, beyond the public one: its parts, its
 * state by weight, and model folders.
 */
#ifndef ENGINE_HANDLE_H
#define ENGINE_HANDLE_H

#include "engine/executor/executor.h"
#include "engine/state/loss_scaler.h"
#include "engine/store/pieces.h"
#include "engine/store/swap.h"
#include "formats/weights.h"
#include "model/labels.h"
#include "model/lora.h"
#include "model/registry.h"
#include "plan/pass/passes.h"
#include "sifr/engine.h"

/* --- parts of an engine, which it owns --- */

/* What a rank keeps for compressed gradients from step to step: errors, and the last factors (0 and
 * 1). *elements FP32 values of host memory; NULL: it keeps none. */
enum { ENGINE_COMPRESSED = 2 };
float *engine_compressed(const sifr_engine *engine, int which, int64_t *elements);
void engine_clear_compressed(const sifr_engine *engine); /* zeros, as at the start */

const sifr_model *engine_model(const sifr_engine *engine);
const sifr_settings *engine_settings(const sifr_engine *engine);
comm_group *engine_group(const sifr_engine *engine); /* of all ranks */
const engine_groups *engine_groups_of(const sifr_engine *engine);
device *engine_device(const sifr_engine *engine);
const plan_schedule *engine_schedule(const sifr_engine *engine); /* of a training step */
engine_executor *engine_trainer(const sifr_engine *engine);      /* which runs it */
const engine_swap *engine_state_file(const sifr_engine *engine); /* NULL: no state is on disk */
const engine_pinned *engine_pinned_memory(const sifr_engine *engine); /* for that file */
int32_t engine_cleaned(const sifr_engine *engine); /* directories of killed runs, removed */
const engine_loss_scaler *engine_scaler(const sifr_engine *engine);

const optim_memory *engine_memory(const sifr_engine *engine);

/* Restores the counts, the loss scale and the optimizer's memory of a checkpoint. */
void engine_restore(sifr_engine *engine, int64_t steps, int64_t updates,
                    const engine_loss_scaler *scaler, const optim_memory *memory);

/* The parts of a weight's state: the weight itself, and the optimizer's states. */
typedef enum engine_part {
    ENGINE_MASTER,
    ENGINE_STATE1,
    ENGINE_STATE2,
    ENGINE_STATE3,
    ENGINE_STATE4,
    ENGINE_PARTS /* at most: engine_parts */
} engine_part;
_Static_assert(ENGINE_PARTS == 1 + OPTIM_STATES, "a part for each state");
int engine_parts(const sifr_engine *engine); /* of a weight, at most */
/* Of the parts of an optimizer's row: "master", and the states' names; and of a weight's. */
const char *engine_part_name(const optim_row *row, engine_part part);
const char *engine_weight_part(const sifr_engine *engine, size_t index, engine_part part);
/* The n-th of all names of parts, n from 0 on, and the type of that part in all weights for which
 * engine_weight_type gives no other. False: there are fewer. */
bool engine_named_part(const sifr_engine *engine, int n, const char **name, base_dtype *type);
const optim_row *engine_optimizer(const sifr_engine *engine);

/* Makes an engine over the ranks of `group`, which is borrowed and must outlive the engine. All
 * ranks call it. If the plan of any rank does not fit in memory or on disk, all ranks fail before
 * any has taken memory. */
sifr_status engine_create(const sifr_model *model, const sifr_settings *settings, comm_group *group,
                          sifr_engine **out, sifr_error *error) SIFR_MUST_CHECK;

/* The same in two calls, for callers with more to check in between: the first plans and checks that
 * the plan fits, the second takes memory and files. All ranks call both. Free the engine even if
 * only the first was called. The strings of `settings` must live until the second call. */
sifr_status engine_plan(const sifr_model *model, const sifr_settings *settings, comm_group *group,
                        sifr_engine **out, sifr_error *error) SIFR_MUST_CHECK;
sifr_status engine_take(sifr_engine *engine, sifr_error *error) SIFR_MUST_CHECK;

/* The same on a given device. The engine closes the device, even if this call fails. */
sifr_status engine_create_on(device *dev, const sifr_model *model, const sifr_settings *settings,
                             comm_group *group, sifr_engine **out,
                             sifr_error *error) SIFR_MUST_CHECK;

/* Runs the last step's update if it was delayed (plan_pass_delay_update). Call it before reading or
 * writing state and before using idle memory. It does not change what a caller can observe. All
 * ranks call it. */
sifr_status engine_settle(const sifr_engine *engine, sifr_error *error) SIFR_MUST_CHECK;

/* The type of the master weights: FP32 or BF16. */
base_dtype engine_master_type(const sifr_engine *engine);

/* The type of a weight's part. A frozen weight has one part, ENGINE_MASTER: the parameters that
 * kernels read, in the training type. */
base_dtype engine_weight_type(const sifr_engine *engine, size_t index, engine_part part);

/* How many parts a weight has: engine_parts, or fewer. A part has one value for every
 * engine_part_each elements of the weight, usually for each. engine_count_values: how many values
 * belong to `elements` elements, the first of which begins a value. */
int engine_weight_parts(const sifr_engine *engine, size_t index);
int64_t engine_part_each(const sifr_engine *engine, size_t index, engine_part part);
int64_t engine_count_values(const sifr_engine *engine, size_t index, engine_part part,
                            int64_t elements);

/* The elements of a part: those of the weight, or one for each of its rows or columns
 * (optim_state.axis). Below, `first` and `count` are such elements. */
int64_t engine_part_elements(const sifr_engine *engine, size_t index, engine_part part);

/* This rank holds elements *first … *first + *count - 1 of weight `index`, as its model has it (of
 * rows x columns elements; model/weight_blocks.h): all of them if the part is not sliced. False if
 * it holds none. */
bool engine_range(const sifr_engine *engine, size_t index, engine_part part, int64_t *first,
                  int64_t *count);

/* Whether the host can access all state in place: none of it is on disk or in separate device
 * memory. */
bool engine_in_place(const sifr_engine *engine);

/* Elements first … first + count - 1 of that range, in the part's type: in place, or in `scratch`
 * (count elements) if the host cannot access them. *out points to them until the next step or
 * write. */
sifr_status engine_view(const sifr_engine *engine, size_t index, engine_part part, int64_t first,
                        int64_t count, void *scratch, const void **out,
                        sifr_error *error) SIFR_MUST_CHECK;

/* Calls `take` for a range that this rank holds, in the part's type, in order: in place, from
 * pinned host memory while the next piece is copied there, or from `scratch` (ENGINE_VISITED
 * elements of 4 bytes; needed unless engine_in_place). `first` and `count` of a call are bytes of
 * the range. `take` may not use the engine. */
enum { ENGINE_VISITED = 1 << 18 };
sifr_status engine_visit(const sifr_engine *engine, size_t index, engine_part part, int64_t first,
                         int64_t count, void *scratch, engine_take_bytes take, void *user,
                         sifr_error *error) SIFR_MUST_CHECK;

/* *out: the values of such a range as FP32, for parts with a value for each element. Values that
 * are kept in another type are converted into `scratch` (count values). */
sifr_status engine_view_fp32(const sifr_engine *engine, size_t index, engine_part part,
                             int64_t first, int64_t count, float *scratch, const float **out,
                             sifr_error *error) SIFR_MUST_CHECK;

/* Overwrites such a range with values of the part's type, at any alignment. Call engine_refresh
 * afterwards.
 */
sifr_status engine_write(sifr_engine *engine, size_t index, engine_part part, int64_t first,
                         int64_t count, const void *values, sifr_error *error) SIFR_MUST_CHECK;

/* The values of engine_range in the engine's own memory if they are FP32 and the host can access
 * them; otherwise NULL. */
float *engine_slice(const sifr_engine *engine, size_t index, engine_part part, int64_t *first,
                    int64_t *count);

/* The same for one rank, which holds the whole part. */
float *engine_state(const sifr_engine *engine, size_t index, engine_part part);

/* Whether ranks hold only slices of this part of a weight, or some hold none of it. */
bool engine_is_cut(const sifr_engine *engine, size_t index, engine_part part);

/* A weight as rank `rank` has it: of a cut one, ranks at other places of PLAN_TENSORS have other
 * blocks. */
model_weight engine_weight_at(const sifr_engine *engine, size_t index, int32_t rank);

/* The elements of a part that rank `rank` owns: of the weight as that rank has it. They lie in its
 * slice of the flat parameter, which it holds even if the part is whole; replicas own an equal part
 * of a slice each. A part of rows or columns belongs to the owner of the weight's first element.
 * Each element belongs to exactly one rank. */
void engine_share(const sifr_engine *engine, size_t index, engine_part part, int32_t rank,
                  int64_t *first, int64_t *count);

/* The elements of a weight, as its model has it, that this rank holds in any form, and so must read
 * or compute at the start. */
void engine_held(const sifr_engine *engine, size_t index, int64_t *first, int64_t *count);

/* These take and give elements of logical weights, which files have (model/weight_blocks.h).
 * Copies elements first … first + count - 1 of a weight's part, as FP32 values, into `out` on every
 * rank, from the ranks that hold them. All ranks call it with the same range. */
sifr_status engine_collect(const sifr_engine *engine, size_t index, engine_part part, int64_t first,
                           int64_t count, float *out, sifr_error *error) SIFR_MUST_CHECK;

/* Collects such elements on rank 0 alone: the others send those that they own, and use `out` as
 * room. For parts that are cut (engine_is_cut). `peers` are all ranks. */
sifr_status engine_hand_in(const sifr_engine *engine, comm_group *peers, size_t index,
                           engine_part part, int64_t first, int64_t count, float *out,
                           sifr_error *error) SIFR_MUST_CHECK;

/* Writes elements first … first + count - 1 of a weight wherever this rank holds them: in its
 * master weights and in the parameters that kernels read. */
sifr_status engine_put(sifr_engine *engine, size_t index, int64_t first, int64_t count,
                       const float *values, sifr_error *error) SIFR_MUST_CHECK;
/* Fills all elements of a weight that this rank holds with values from `make`, which writes
 * elements first … first + count - 1 to `values` and is called by several threads at once. */
typedef void (*engine_values)(const void *user, size_t index, int64_t first, int64_t count,
                              float *values);
sifr_status engine_fill(sifr_engine *engine, size_t index, engine_values make, const void *user,
                        sifr_error *error) SIFR_MUST_CHECK;

/* Updates the parameters that kernels read after state was written through engine_write. All ranks
 * call it. */
sifr_status engine_refresh(sifr_engine *engine, sifr_error *error) SIFR_MUST_CHECK;

/* Of an optimizer that averages: parameters become the average until the next step. Harmless for
 * others. All ranks call it. */
sifr_status engine_show_average(sifr_engine *engine, sifr_error *error) SIFR_MUST_CHECK;

/* sifr_engine_evaluate with the logits of all rows, in fp32: micro_batch_size x seq_length x
 * engine_words. They have room of their own, so this is for heads with few rows. All ranks call
 * it. */
sifr_status engine_evaluate_logits(sifr_engine *engine, const sifr_batch *batch, double *loss_sum,
                                   int64_t *labelled, float *logits,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* The log-probabilities of a micro batch's labels, in the last step or evaluation of a model that
 * learns from pairs: micro_batch_size x seq_length, 0 where there is no label. All ranks call it.
 */
sifr_status engine_read_log_probabilities(const sifr_engine *engine, bool evaluation,
                                          int32_t micro_batch, float *out,
                                          sifr_error *error) SIFR_MUST_CHECK;

int64_t engine_words(const sifr_model *model); /* rows of the head */

/* The logits of the first `rows` rows that the last run of a schedule with logits left, in fp32.
 * `pieces`: of a device that hides its memory, otherwise NULL. */
sifr_status engine_get_logits(const engine_executor *executor, const plan_schedule *s,
                              engine_pieces *pieces, int64_t rows, float *out,
                              sifr_error *error) SIFR_MUST_CHECK;

/* Refuses, by name, what no engine of this rank can be made for, whatever the model is. */
sifr_status engine_check_settings(const sifr_settings *settings, int32_t ranks, int32_t rank,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* The settings of a plan, with the mesh of the ranks of `group`; NULL: one rank. */
plan_settings engine_plan_settings(const sifr_settings *settings, const comm_group *group);

/* Checks that each of `count` numbers of an input chooses a row of its table, or is a negative
 * label, that positions are below `length`, that of a sequence, and that targets of rows with a
 * label are what the head reads (model_target_rules); SIFR_FAILED names the first that does not.
 * SIFR_USAGE for positions that the model does not read. */
sifr_status engine_check_batch(const sifr_model *model, const sifr_batch *batch, int64_t count,
                               int64_t length, sifr_error *error) SIFR_MUST_CHECK;
/* How many losses `count` tokens have, in sequences of `length`: one for each label, or for each
 * pair of sequences that has labels (sifr_prefer); 0 for a batch without labels. */
int64_t engine_count_losses(const sifr_model *model, const sifr_batch *batch, int64_t count,
                            int64_t length);
/* Copies the batch into a plan's inputs. Token types and segments that it lacks become 0, and
 * positions are counted. SIFR_USAGE, with nothing copied, for tokens that it lacks, and where the
 * plan has losses for labels and targets that they are made from. */
sifr_status engine_put_batch(const engine_executor *executor, const plan_schedule *s,
                             const sifr_batch *batch, sifr_error *error) SIFR_MUST_CHECK;

/* Bytes that new work can take here; 0 if the system does not say. */
uint64_t engine_memory_capacity(void);

/* Bytes that each of `ranks` ranks of this host can take: its share of that, within the limits of a
 * process. */
uint64_t engine_rank_capacity(int32_t ranks);

/* SIFR_NO_MEMORY, with the numbers, if the blocks of `ranks` ranks on this host together take more
 * than the host has left, or one of them more than a process may take. `schedule` is that of one
 * rank; the others' blocks have the same size except for padding. */
sifr_status engine_check_memory(const plan_schedule *schedule, int32_t ranks,
                                sifr_error *error) SIFR_MUST_CHECK;

/* SIFR_NO_MEMORY, with the numbers, on all ranks if the ranks of a host together need more in files
 * below `parent` than is free there; `bytes` is this rank's need. All ranks call it. Leftovers of
 * killed runs are removed first: *cleaned directories. */
sifr_status engine_check_disk(comm_group *group, const char *parent, int64_t bytes,
                              int32_t *cleaned, sifr_error *error) SIFR_MUST_CHECK;

/* The resource that is short when a call ends with SIFR_NO_MEMORY. */
typedef enum engine_lack { ENGINE_LACK_MEMORY, ENGINE_LACK_DISK } engine_lack;

/* Adds advice for a user of the library to the message of SIFR_NO_MEMORY; returns `status`.
 * Messages about disks already say what to do. */
sifr_status engine_advise(plan_mode mode, engine_lack lack, sifr_status status,
                          sifr_error *error) SIFR_MUST_CHECK;

/* --- model folders: engine_folder.c --- */

/* An open model folder: its config, its description and its mapped weights. */
typedef struct engine_folder {
    model_config config;
    const model_architecture *architecture;
    sifr_model *model;
    formats_weights *weights;
    model_labels labels; /* of a task that has them */
    /* By weight: whether it is made from a seed, being absent or another task's; NULL: none is. */
    bool *made;
    size_t made_count;
    formats_weights *adapter; /* values of a model with adapters; NULL: they begin as fresh ones */
} engine_folder;

/* What a caller wants of a model folder in place of what it is. */
typedef struct engine_folder_options {
    model_choice choice;        /* without num_labels, which follows from the labels */
    const model_labels *labels; /* by the user's wish; NULL: none */
    const model_labels *found;  /* those of the data, for a head that is made; NULL: none */
    bool new_head;              /* it is made even if the folder has one */
    const char *adapter;        /* folder with values of choice.lora; NULL: fresh ones */
} engine_folder_options;

/* Reads and checks everything except the values. */
sifr_status engine_folder_open(const char *path, engine_folder *out,
                               sifr_error *error) SIFR_MUST_CHECK;
/* The same of a folder that is to be trained: a head for labels or for masked tokens that it lacks,
 * or has for another task, is made. SIFR_USAGE where its head has other labels than `labels`, and
 * no new head is wanted. */
sifr_status engine_folder_open_as(const char *path, const engine_folder_options *options,
                                  engine_folder *out, sifr_error *error) SIFR_MUST_CHECK;
/* Writes config.json of `from` into the folder `to`, if what was wanted changes it: architectures,
 * id2label, label2id, num_labels and problem_type, and no other byte. */
sifr_status engine_folder_put_config(const engine_folder *folder, const char *from, const char *to,
                                     sifr_error *error) SIFR_MUST_CHECK;
/* Logs mistakes about which transformers also only warns: tensors that the model lacks, a wrong
 * size in the index; and a head that is made, or left out. */
void engine_folder_warn(const engine_folder *folder, const sifr_log *log);
void engine_folder_close(engine_folder *folder); /* harmless on a zeroed one */

#define ENGINE_ADAPTER_FILE "adapter_model.safetensors"
/* The tensor of a trained weight in the folder's adapter; NULL: it has none. */
const formats_tensor *engine_adapter_tensor(const engine_folder *folder, size_t weight);

/* The tensor of a weight: under its name, or one that older files have instead; NULL: none. */
const formats_tensor *engine_find_tensor(const formats_weights *weights,
                                         const model_architecture *architecture, const char *name);

/* Checks that a folder has all tensors of the model in the right shapes, then calls `take` for each
 * weight. */
typedef sifr_status (*engine_take_weight)(void *user, size_t index, const formats_tensor *tensor,
                                          sifr_error *error);
sifr_status engine_visit_folder(const sifr_model *model, const model_architecture *architecture,
                                const formats_weights *weights, engine_take_weight take, void *user,
                                sifr_error *error) SIFR_MUST_CHECK;

/* The same for an open folder. Weights that are made, or that only an adapter has, are left out. */
sifr_status engine_visit_opened(const engine_folder *folder, engine_take_weight take, void *user,
                                sifr_error *error) SIFR_MUST_CHECK;

/* Fills the engine from a folder. */
sifr_status engine_load_folder(sifr_engine *engine, const model_architecture *architecture,
                               const formats_weights *weights, sifr_error *error) SIFR_MUST_CHECK;

/* The same of an open folder; weights to be made are made from the engine's seed. */
sifr_status engine_load_opened(sifr_engine *engine, const engine_folder *folder,
                               sifr_error *error) SIFR_MUST_CHECK;

/* Fills only the model's `based` weights, after a checkpoint filled the others. */
sifr_status engine_load_frozen(sifr_engine *engine, const engine_folder *folder,
                               sifr_error *error) SIFR_MUST_CHECK;

/* A tensor of a model folder to be written: its weight, and its name and type in the folder. Frozen
 * weights are copies of their bytes in the folder that they came from. */
typedef struct engine_stored_tensor {
    size_t weight;
    const char *name;
    base_dtype dtype;
    const formats_tensor *copied; /* whose bytes are written; NULL: the weight's values are */
} engine_stored_tensor;

typedef struct engine_stored {
    engine_stored_tensor *tensors;
    size_t count;
    const char *file;               /* the one file that they lie in; NULL: those of a model */
    char (*names)[MODEL_LORA_NAME]; /* of an adapter's tensors */
    const formats_tensor **carried; /* written as they are, behind the others */
    size_t carried_count;
} engine_stored;

/* What a folder with a tower holds that is not of its text model, in the order of the folder:
 * *count tensors, borrowed. None of other folders. The caller frees *out. */
sifr_status engine_find_carried(const sifr_model *model, const model_architecture *architecture,
                                const formats_weights *weights, const formats_tensor ***out,
                                size_t *count, sifr_error *error) SIFR_MUST_CHECK;

/* Uses the names and types of `like` (the folder that the weights came from; what it lacks has the
 * type of its first weight), or, if that is NULL, the weights' own names and `dtype`. A tied head
 * that `like` stores is stored again, and what is beside the text model goes along. The names
 * belong to `like` or to the model. Of a model with adapters only what is trained is written, in
 * FP32, into ENGINE_ADAPTER_FILE. */
sifr_status engine_stored_make(const sifr_model *model, const model_architecture *architecture,
                               const formats_weights *like, base_dtype dtype, engine_stored *out,
                               sifr_error *error) SIFR_MUST_CHECK;
/* The same for all weights except those of adapters, in a model folder's files. */
sifr_status engine_stored_whole(const sifr_model *model, const model_architecture *architecture,
                                const formats_weights *like, base_dtype dtype, engine_stored *out,
                                sifr_error *error) SIFR_MUST_CHECK;
void engine_stored_free(engine_stored *stored); /* harmless on a zeroed one */

/* Writes tensors into an existing folder. `give` is called for elements first … first + count - 1
 * of a weight, at most engine_piece_elements() at a time, in order. */
typedef sifr_status (*engine_give_values)(void *user, size_t weight, int64_t first, int64_t count,
                                          const float **out, sifr_error *error);
int64_t engine_piece_elements(void);
sifr_status engine_write_folder(const sifr_model *model, const engine_stored *stored,
                                engine_give_values give, void *user, const char *directory,
                                sifr_error *error) SIFR_MUST_CHECK;

/* Writes the engine's weights into an existing folder, with the names and types of `like` (the
 * folder they came from), or, if that is NULL, with their own names and `dtype`. All ranks call it;
 * the first one writes, and all return its status. Sliced weights are sent in pieces of a few MiB,
 * so no rank ever has a whole unit. `like` and `directory` are read by the first rank only. */
sifr_status engine_save_folder(const sifr_engine *engine, const model_architecture *architecture,
                               const formats_weights *like, base_dtype dtype, const char *directory,
                               sifr_error *error) SIFR_MUST_CHECK;

/* The same of the average of the weights (ema_decay); frozen weights are as they are. */
sifr_status engine_save_average(const sifr_engine *engine, const model_architecture *architecture,
                                const formats_weights *like, base_dtype dtype,
                                const char *directory, sifr_error *error) SIFR_MUST_CHECK;

#endif
