/* The schedule: everything that one step of one rank will do, as a flat list of instructions with
 * their operands at known places. lower.c makes it from a model; passes rewrite it; memory.c gives
 * every buffer an address; the executor runs it, the pricer prices it, dump.c prints it.
 *
 * A schedule is plain data and belongs to whoever made it; it keeps pointers to the model and the
 * device, which must outlive it.
 */
#ifndef PLAN_SCHEDULE_H
#define PLAN_SCHEDULE_H

#include <stddef.h>

#include "device/device.h"
#include "model/description.h"

/* Classes of memory, as the planner adds them up and the ledger reports them. */
typedef enum plan_class {
    PLAN_PARAMETERS,  /* what kernels read as weights; stage 3: this rank's slice */
    PLAN_GATHERED,    /* stage 3: a unit's parameters while they are in use */
    PLAN_MASTERS,     /* FP32 weights, where the training type is 16 bits wide and has such */
    PLAN_MOMENTS,     /* both of Adam's */
    PLAN_GRADIENTS,   /* of weights */
    PLAN_ACTIVATIONS, /* values and their gradients, and what backward keeps */
    PLAN_CACHE,       /* keys and values of generation */
    PLAN_INPUTS,      /* token ids, positions, labels, losses */
    PLAN_CONSTANTS,   /* rotary tables */
    PLAN_SWAP,        /* buffers between state that is away and the optimizer */
    PLAN_SCRATCH,     /* of kernels, one block that all share */
    PLAN_CLASSES
} plan_class;

const char *plan_class_name(plan_class class);

/* Where a buffer is: the device's memory, the host's, or a file on disk. Kernels reach the device's
 * only, which on CPU ranks is the host's, too (device_is_separate); a buffer that is away from it
 * (plan_is_away) only PLAN_READ and PLAN_WRITE touch. */
typedef enum plan_tier { PLAN_DEVICE, PLAN_HOST, PLAN_NVME, PLAN_TIERS } plan_tier;

/* A buffer lives from instruction `first` to instruction `last`; first is -1 where it lives always.
 * Where last is before first it lives on over the end of the step, and in the next one until
 * `last`: set by plan_find_lives. `offset` is set by plan_place: in its tier's block of memory, or
 * in the file. */
typedef struct plan_buffer {
    plan_class class;
    plan_tier tier;
    int32_t first, last;
    int32_t unit,
        index; /* whose: unit and its gradient slot or value; -1 where that says nothing */
    int64_t bytes, offset;
    bool aligned;  /* of the device, and moved by transfers from and to what is away: whoever runs
                      the plan aligns its start, for which `bytes` has room */
    bool deferred; /* nothing but what is deferred touches it */
} plan_buffer;

typedef enum plan_action {
    PLAN_FORWARD,   /* a kernel of the forward pass */
    PLAN_RECOMPUTE, /* one of the forward pass again: backward reads what it makes */
    PLAN_BACKWARD,  /* a kernel of the backward pass */
    PLAN_ADD,       /* a partial gradient sum */
    PLAN_COUNT,     /* labelled tokens of the global batch, over all ranks */
    PLAN_LOSS,      /* folds the losses of a micro batch */
    PLAN_SQUARES,   /* sums of squares of a unit's gradient */
    PLAN_NORM,      /* folds them over all ranks; decides whether the update happens */
    PLAN_UPDATE,    /* the optimizer on one unit */
    PLAN_GATHER,    /* all-gather of a unit's slices: x0 is this rank's, y the whole */
    PLAN_REDUCE,    /* reduce-scatter of a gradient sum: x0 is the whole, y this rank's slice */
    PLAN_READ,      /* x0 in a file or in host memory, y in the device's; with PLAN_WRITE left out
                       where the update does not happen */
    PLAN_WRITE,     /* x0 in the device's memory, y in a file or in host memory */
    PLAN_WAIT,      /* until the transfer that `wait` names is over; its operands */
    PLAN_ACTIONS
} plan_action;

const char *plan_action_name(plan_action action);

/* Transfers from and to a file are the disk's, those from and to host memory the copy queue's. */
typedef enum plan_queue {
    PLAN_COMPUTE,
    PLAN_COMMUNICATION,
    PLAN_DISK,
    PLAN_COPY,
    PLAN_QUEUES
} plan_queue;

const char *plan_queue_name(plan_queue queue);

/* Which operand of a device_call an address is for. */
typedef enum plan_role {
    PLAN_X0,
    PLAN_X1,
    PLAN_X2,
    PLAN_X3,
    PLAN_W0,
    PLAN_W1,
    PLAN_Y,
    PLAN_SAVED0,
    PLAN_SAVED1,
    PLAN_DY,
    PLAN_DX0,
    PLAN_DX1,
    PLAN_DX2,
    PLAN_DX3,
    PLAN_DW0,
    PLAN_DW1,
    PLAN_ROLES
} plan_role;

const char *plan_role_name(plan_role role);
device_matrix *plan_role_matrix(device_call *call, plan_role role);

typedef struct plan_operand {
    int32_t buffer;
    uint8_t role;
    int64_t offset; /* bytes from the buffer's start */
} plan_operand;

typedef struct plan_instruction {
    uint8_t action, queue;
    bool accumulate_dw;
    bool deferred;       /* of the update of the step before, which this step carries out */
    int16_t unit;        /* -1: of no unit */
    int32_t micro_batch; /* of this rank, 0 to k-1; -1: of none */
    int32_t node;        /* of the model; -1: of none */
    int32_t call;        /* index into calls; -1: no kernel */
    int32_t first_operand, operands;
    int32_t wait;    /* PLAN_WAIT: the transfer that must be over; else -1 */
    int64_t bytes;   /* PLAN_GATHER, PLAN_REDUCE: of a slice; PLAN_READ, PLAN_WRITE: all */
    int64_t element; /* PLAN_UPDATE: where its vectors begin, counted over all units of the model;
                        dropout of a tile: where that begins, counted over the micro batch */
} plan_instruction;

/* Some ten thousand micro batches; a list without a bound would fill the memory. */
enum { PLAN_INSTRUCTION_LIMIT = 1 << 22 };

typedef enum plan_mode {
    PLAN_TRAIN,
    PLAN_EVALUATE, /* forward and losses */
    PLAN_LOGITS,   /* forward, logits of all rows */
    PLAN_GENERATE  /* forward of `length` new tokens with a cache, logits of the last */
} plan_mode;

typedef enum plan_order { PLAN_BATCH, PLAN_UNIT } plan_order;

/* What is kept of the forward pass for the backward pass. The same bits each way. */
typedef enum plan_recompute {
    PLAN_RECOMPUTE_NONE, /* all that it reads */
    PLAN_RECOMPUTE_UNIT, /* the inputs of units; the rest is computed again, unit by unit */
    PLAN_RECOMPUTE_AUTO  /* and, within limits, what is dear to compute again for its size */
} plan_recompute;

/* What steers the transfers of ZeRO beside its stage: DeepSpeed's keys of the same names. Counts
 * are elements of flat parameters. Nothing here changes a result. */
typedef struct plan_transfers {
    bool overlap_comm;        /* transfers beside computing; false: each is waited for at once */
    int64_t reduce_bucket;    /* gradients on their way beside computing */
    int64_t allgather_bucket; /* parameters on their way after the update */
    /* Stage 3 only. */
    int64_t prefetch_bucket;    /* units are gathered ahead until at least so many are; 0: none */
    int64_t max_live;           /* nothing is gathered ahead beyond so many that are gathered */
    int64_t max_reuse_distance; /* what is used again with fewer gathered in between stays */
    int64_t param_persistence;  /* units of at most so many always stay gathered ... */
    int64_t model_persistence;  /* ... while all of them together are at most so many */
} plan_transfers;

/* Addresses and places in files that disks are read and written by; copies of host memory move the
 * same whole pages. */
enum { PLAN_ALIGNMENT = 256, PLAN_DISK_ALIGNMENT = 4096 };

/* State on other tiers, "away" below. Counts of 0 are worked out from the model. */
typedef struct plan_offload {
    plan_tier masters, moments;
    plan_tier parameters;            /* as kernels read them; away at stage 3 only */
    plan_tier gradients;             /* their final sums; away of one rank, or at stages 2 and 3 */
    plan_tier activations;           /* what the forward pass leaves for the backward pass */
    int64_t sub_group;               /* elements that are read, updated and written at a time */
    int32_t buffers;                 /* each for one kind of optimizer state of one sub-group */
    bool read_ahead;                 /* the next sub-group is read beside the update of this one */
    bool write_behind;               /* and the last one written */
    bool masters_stay, moments_stay; /* on the device, whatever tier is chosen for the state */
    int32_t slices;     /* of parameters that are in memory at a time, from their read to the end
                           of their use, of several ranks of their gather */
    int64_t most_slice; /* elements that a slice may have; 0: any number. Makes no buffer larger */
    int64_t kept;       /* elements of slices that stay in the host's memory, and are not in the
                           file, units in the model's order */
    double kept_state;  /* share of optimizer state that stays with the device, in that order */
} plan_offload;

typedef struct plan_settings {
    plan_mode mode;
    device_dtype dtype; /* training type: FP32, BF16 or FP16 */
    int64_t sequences, length;
    int64_t cache_length;  /* PLAN_GENERATE: positions that the cache can hold */
    int32_t micro_batches; /* k: of one rank and step */
    int32_t rank, world_size;
    int32_t stage; /* of ZeRO, 0 to 3 */
    plan_transfers transfers;
    plan_offload offload;
    device_dtype
        travel; /* type in which gradients are sent to be added: FP32 (or NONE), BF16, FP16 */
    /* Type in which sums of gradients are kept, each of them rounded to it: FP32 (or NONE), BF16,
     * FP16. One unit's at a time is FP32 while a micro batch makes it. With 16 bits they travel so
     * too. */
    device_dtype gradients;
    /* Type of the weights that the optimizer adds to, and of its moments: FP32 (or NONE), or, where
     * the training type is that, BF16. In BF16 the parameters themselves are the master weights. */
    device_dtype master_type, moment_type;
    plan_order order;
    bool sequential;          /* gradient_order: left to right instead of the tree */
    bool external_parameters; /* another schedule has them, and caches: no room here */
    plan_recompute recompute;
    /* Of PLAN_RECOMPUTE_AUTO: what activations may take at most, and the whole block; 0: no limit.
     */
    int64_t activation_bytes, room_bytes;
    /* Of PLAN_RECOMPUTE_UNIT: units whose inputs are kept, the first and the last one apart; those
     * between are computed again, too. 0: every unit's. */
    int32_t checkpoints;
    /* Tokens of a tile: what only works row by row goes through a micro batch so many at a time, so
     * that what it makes for itself alone is there for one tile. A multiple of DEVICE_TOKEN_CHUNK;
     * 0: all at once. The same bits. */
    int64_t tile_tokens;
    device_attributes adam;
} plan_settings;

typedef struct plan_schedule {
    const sifr_model *model;
    device *dev;
    plan_settings settings;

    plan_instruction *instructions;
    plan_operand *operands;
    device_call *calls; /* prepared, without addresses */
    plan_buffer *buffers;
    size_t instruction_count, instruction_room, operand_count, operand_room;
    size_t call_count, call_room, buffer_count, buffer_room;

    /* Buffers that the engine fills or reads, by unit, value or micro batch; -1 where absent. */
    int32_t *parameters, *masters, *first_moments, *second_moments; /* by unit */
    int64_t *unit_elements; /* of the flat parameter, padded to world_size x block */
    int32_t *tables;        /* by model_table */
    int32_t *tokens, *positions, *labels, *losses; /* by micro batch */
    int32_t *caches; /* PLAN_GENERATE: keys and values by node, 2 each */
    int32_t squares; /* FP64 sums of squares of all units, by blocks */
    int64_t square_count;
    int32_t
        all_squares; /* those of all ranks, one after the other, where each has a slice; else -1 */
    int32_t logits;  /* PLAN_LOGITS, PLAN_GENERATE */
    int32_t scratch;
    int32_t spread; /* of a deferred update, over quarters of the forward pass; 0: none is */

    /* Set by plan_place. */
    int64_t total_bytes; /* of the one block of the device that holds every buffer there */
    int64_t host_bytes;  /* of the block of host memory, where that is not the device's */
    int64_t nvme_bytes;  /* of the file */
    /* Of the block of the device, by class, at the instruction where their sum is largest. */
    int64_t peak_bytes[PLAN_CLASSES];
    int32_t peak_instruction;
    int64_t largest_bytes[PLAN_CLASSES];       /* each class where it alone is largest */
    int32_t largest_instruction[PLAN_CLASSES]; /* where that is first; -1: always */
} plan_schedule;

/* Lowers a finished model. device_prepare is called for every kernel, so that the scratch is known;
 * no memory of the device is taken. */
sifr_status plan_lower(const sifr_model *model, device *dev, const plan_settings *settings,
                       plan_schedule **out, sifr_error *error) SIFR_MUST_CHECK;
void plan_free(plan_schedule *schedule); /* NULL is harmless */

/* Where state is: the tier of each buffer, as settings.offload says. Before the passes. */
void plan_assign_tiers(plan_schedule *schedule);
bool plan_parameters_away(const plan_schedule *schedule); /* those of some unit */

/* Whether kernels cannot reach a buffer: it is on disk, or in host memory that is not the device's.
 */
bool plan_is_away(const plan_schedule *schedule, int32_t buffer);
bool plan_is_away_tier(const plan_schedule *schedule, plan_tier tier);
/* That of transfers from and to a buffer that is away. */
plan_queue plan_queue_of(const plan_schedule *schedule, int32_t buffer);

/* Whether a unit's parameters stay whole on every rank at stage 3: small ones, asked for in the
 * model's order, while there is room; *room begins as transfers.model_persistence. */
bool plan_persists(const plan_schedule *schedule, int32_t unit, int64_t *room);

/* The ZeRO stage of the settings as a pass over a lowered schedule: which states are slices, where
 * the schedule gathers and reduces (design page, section 5). Nothing for one rank. */
sifr_status plan_pass_zero(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* Stage 3: gathered parameters that are soon used again stay. After plan_pass_zero. */
sifr_status plan_pass_reuse(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* Transfers start early and are waited for late. After plan_pass_reuse; nothing for one rank. */
sifr_status plan_pass_overlap(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* Parameters away: a slice is read before its gather starts, ahead of it as far as
 * offload.slices allows. After plan_pass_overlap; SIFR_USAGE where offload.slices or
 * offload.most_slice are too few. */
sifr_status plan_pass_offload_parameters(plan_schedule *schedule,
                                         sifr_error *error) SIFR_MUST_CHECK;

/* Gradients away: a slice of sums is written once it is final, after its squares are taken, and
 * the update finds it there. After plan_pass_offload_parameters. */
sifr_status plan_pass_offload_gradients(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* Activations away: what the forward pass leaves for the backward pass is written behind the
 * one and read ahead of the other, through a window worked out from the model. After
 * plan_pass_offload_gradients. */
sifr_status plan_pass_offload_activations(plan_schedule *schedule,
                                          sifr_error *error) SIFR_MUST_CHECK;

/* State away: each update becomes reads, updates and writes of sub-groups that go through a few
 * buffers in turn. After plan_pass_offload_activations; SIFR_USAGE where offload.buffers are too
 * few. */
sifr_status plan_pass_offload_optimizer(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* Whether state is away that updates move, in both directions beside them, and parameters are not.
 */
bool plan_may_delay_update(const plan_schedule *schedule);

/* Of such a schedule: what follows the norm is carried out by the next step, beside its
 * forward pass. `spread` is schedule->spread of the first rank, since all ranks exchange what they
 * do in the same order; there it is -1: as far as the peak of memory allows. Does plan_memory, too.
 * After plan_pass_offload_optimizer. */
sifr_status plan_pass_delay_update(plan_schedule *schedule, int32_t spread,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* Bytes that a step reads from disk and writes there; that it copies from host memory and to it. */
void plan_disk(const plan_schedule *schedule, int64_t *read, int64_t *written);
void plan_copies(const plan_schedule *schedule, int64_t *read, int64_t *written);

/* Bytes of the file (PLAN_NVME) or of host memory (PLAN_HOST) by class; together nvme_bytes or
 * host_bytes. */
void plan_away_classes(const plan_schedule *schedule, plan_tier tier, int64_t bytes[PLAN_CLASSES]);

/* Bytes that a step delivers to this rank by gathers and by reductions: padded elements x (N-1)/N x
 * bytes of what travels, for each pass over them. */
void plan_wire(const plan_schedule *schedule, int64_t *gathered, int64_t *reduced);

/* Gathers and reductions that a step starts; 0 for one rank. */
void plan_calls(const plan_schedule *schedule, int64_t *gathers, int64_t *reductions);

bool plan_narrow_gradients(const plan_settings *settings); /* sums of gradients have 16 bits */
bool plan_has_masters(const plan_settings *settings);      /* beside the parameters */
device_dtype plan_moment_type(const plan_settings *settings);

/* Index in the global batch of this rank's micro batch (design page, promise 1). */
int32_t plan_global_micro_batch(const plan_settings *settings, int32_t rank, int32_t micro_batch);

/* first and last of all buffers, by the list. */
void plan_find_lives(plan_schedule *schedule);
/* Whether, by these, a buffer is in the device's memory for a part of the step only. */
bool plan_comes_and_goes(const plan_schedule *schedule, int32_t buffer);
/* Offsets and the peak by class, of lifetimes as they are. */
sifr_status plan_place(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;
/* Both. */
sifr_status plan_memory(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;
/* Bytes of memory that a buffer of so many takes: up to where the next one begins. */
int64_t plan_room(int64_t bytes);

/* A line for each instruction, for people, through `line` (without newline). */
void plan_dump(const plan_schedule *schedule, void (*line)(void *user, const char *text),
               void *user);

/* --- for lower.c and the passes --- */

sifr_status plan_add_buffer(plan_schedule *schedule, plan_class class, int64_t bytes, int32_t unit,
                            int32_t index, bool permanent, int32_t *out,
                            sifr_error *error) SIFR_MUST_CHECK;

/* A buffer of the device into which or from which transfers move `bytes`, in whole pages. */
sifr_status plan_add_disk_buffer(plan_schedule *schedule, int64_t bytes, int32_t unit, int32_t *out,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* Appends an instruction; its operands are those added since the last one. */
sifr_status plan_add_instruction(plan_schedule *schedule, plan_instruction instruction,
                                 sifr_error *error) SIFR_MUST_CHECK;
sifr_status plan_add_operand(plan_schedule *schedule, plan_role role, int32_t buffer,
                             int64_t offset, sifr_error *error) SIFR_MUST_CHECK;

/* Appends a wait of the computing queue for the transfer that is instruction `transfer`, with its
 * operands: what it moves lives until then. */
sifr_status plan_add_wait(plan_schedule *schedule, int32_t transfer,
                          sifr_error *error) SIFR_MUST_CHECK;

/* A pass takes the list out of the schedule and adds what takes its place. */
typedef struct plan_list {
    plan_instruction *instructions;
    plan_operand *operands;
    size_t count;
} plan_list;

plan_list plan_take_list(plan_schedule *schedule);
/* Room for lists of that many, so that they need not be copied as they grow. */
void plan_reserve(plan_schedule *schedule, size_t instructions, size_t operands);
void plan_empty_list(plan_schedule *schedule); /* keeps its room, for another list */
void plan_free_list(plan_list *list);

/* Appends the operands of an instruction of `list`. Returned in *out, until more are added, for the
 * caller to put other buffers in. */
sifr_status plan_add_operands(plan_schedule *schedule, const plan_list *list,
                              const plan_instruction *of, plan_operand **out,
                              sifr_error *error) SIFR_MUST_CHECK;

/* Appends instruction `index` of `list` as it was; moved[i] is the new instruction of an old one,
 * which this adds to. */
sifr_status plan_keep(plan_schedule *schedule, const plan_list *list, size_t index, int32_t *moved,
                      sifr_error *error) SIFR_MUST_CHECK;

/* Appends the start of a transfer of `bytes`, of a collective or between the device and what is
 * away; its operands were added before. */
sifr_status plan_add_transfer(plan_schedule *schedule, plan_action action, plan_queue queue,
                              int32_t unit, int32_t micro_batch, int64_t bytes,
                              sifr_error *error) SIFR_MUST_CHECK;

/* A gather of stage 3 into a buffer that lives while it is used, of `list`. */
bool plan_is_gather_for_use(const plan_schedule *schedule, const plan_list *list,
                            const plan_instruction *instruction);

/* Stores a call (prepared here); *out is its index. */
sifr_status plan_add_call(plan_schedule *schedule, device_call call, int32_t *out,
                          sifr_error *error) SIFR_MUST_CHECK;

#endif
