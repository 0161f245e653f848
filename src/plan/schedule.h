/* The schedule: everything that one step of one rank will do, as a flat list of instructions with
 * their operands at known places. lower.c makes it from a model; passes rewrite it; memory.c gives
 * every buffer an address; the executor runs it, the pricer prices it, dump.c prints it.
 *
 * Its data is here; plan/pass/passes.h has what makes and rewrites it, plan/list.h how a pass edits
 * it, plan/queries.h what can be asked of it.
 *
 * A schedule is plain data and belongs to whoever made it; it keeps pointers to the model and the
 * device, which must outlive it.
 */
#ifndef PLAN_SCHEDULE_H
#define PLAN_SCHEDULE_H

#include <stddef.h>

#include "device/device.h"
#include "model/description.h"
#include "sifr/settings.h"

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

/* Where a buffer is: in device memory, in host memory, or in a file on disk. Kernels reach device
 * memory only, which on CPU ranks is also the host's (device_is_separate). Only PLAN_READ and
 * PLAN_WRITE touch a buffer that is away (plan_is_away). */
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
    PLAN_X4,
    PLAN_X5,
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
    PLAN_DX4,
    PLAN_DX5,
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

/* Some ten thousand micro batches; an unlimited list could fill the memory. */
enum { PLAN_INSTRUCTION_LIMIT = 1 << 22 };

typedef enum plan_mode {
    PLAN_TRAIN,
    PLAN_EVALUATE, /* forward and losses */
    PLAN_LOGITS,   /* forward, logits of all rows */
    /* Forward of `length` new tokens of one sequence with a cache, and logits of the last; or of
     * one token of each of several sequences, and the logits of all. */
    PLAN_GENERATE
} plan_mode;

/* Addresses and places in files that disks are read and written by; copies of host memory move the
 * same whole pages. */
enum { PLAN_ALIGNMENT = 256, PLAN_DISK_ALIGNMENT = 4096 };

/* What a list is made of. */
typedef struct plan_settings {
    sifr_settings step; /* of which threads, isa, fp16 and the disk's path and aio do not act */
    plan_mode mode;
    int64_t cache_length; /* PLAN_GENERATE: positions of a sequence in the cache */
    int32_t rank, world_size;
    bool external_parameters; /* another schedule has them, and caches: no room here */
    bool verify; /* check the list after each pass (plan/verify/verify.h); debug builds always do */
    /* Of SIFR_RECOMPUTE_AUTO, beside activation_memory: what the whole block may take at most; 0:
     * no limit. Both 0: everything is kept. */
    int64_t room_bytes;
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
    int64_t *unit_elements;                /* of the flat parameter, padded to world_size x block */
    int32_t *tables;                       /* by model_table */
    int32_t *inputs[SIFR_INPUTS], *losses; /* by micro batch */
    int32_t *caches;                       /* PLAN_GENERATE: keys and values by node, 2 each */
    int32_t squares;                       /* FP64 sums of squares of all units, by blocks */
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

void plan_free(plan_schedule *schedule); /* NULL is harmless */

#endif
