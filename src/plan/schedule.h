/* The schedule: everything that one step of one rank does, as a flat list of instructions with
 * operands at known places. lower.c makes it from a model; passes rewrite it; memory.c gives every
 * buffer an address; the executor runs it, the pricer prices it, dump.c prints it.
 *
 * This header has the data. plan/pass/passes.h makes and rewrites a schedule, plan/list.h edits its
 * list, plan/queries.h has queries.
 *
 * A schedule is plain data and belongs to its creator. It keeps pointers to the model and the
 * device, which must outlive it. */
#ifndef PLAN_SCHEDULE_H
#define PLAN_SCHEDULE_H

#include <stddef.h>

#include "comm/comm.h"
#include "device/device.h"
#include "model/description.h"
#include "optim/optim.h"
#include "plan/encoding.h"
#include "plan/mesh.h"
#include "plan/pipeline.h"
#include "sifr/settings.h"

/* Classes of memory, as the planner adds them up and the ledger reports them. */
typedef enum plan_class {
    PLAN_PARAMETERS,  /* what kernels read as weights; stage 3: this rank's slice */
    PLAN_GATHERED,    /* stage 3: a segment's parameters while they are in use */
    PLAN_SECONDARY,   /* stage 3: this rank's part of a copy that its neighbours gather again */
    PLAN_DECODED,     /* values of a segment that is held, or came, as codes, while in use */
    PLAN_OUTGOING,    /* codes on their way to other ranks, and of gradients those that came */
    PLAN_ERRORS,      /* of compressed gradients: what a rank has not sent, and the last factors */
    PLAN_MASTERS,     /* FP32 weights, if the training type has 16 bits and master weights */
    PLAN_MOMENTS,     /* states of the optimizer beside master weights: Adam's moments */
    PLAN_GRADIENTS,   /* of weights */
    PLAN_ACTIVATIONS, /* values and their gradients, and saved results for the backward pass */
    PLAN_CACHE,       /* keys and values of generation, and states */
    PLAN_INPUTS,      /* token ids, positions, labels, losses */
    PLAN_CONSTANTS,   /* rotary tables */
    PLAN_SWAP,        /* buffers between state that is offloaded and the optimizer */
    PLAN_SCRATCH,     /* one block shared by all kernels */
    PLAN_CLASSES
} plan_class;

const char *plan_class_name(plan_class class);

/* Where a buffer is: in device memory, in host memory, or in a file on disk. Kernels reach device
 * memory only, which on CPU ranks is also the host's (device_is_separate). Only PLAN_READ and
 * PLAN_WRITE touch a buffer that is offloaded (plan_is_offloaded). */
typedef enum plan_tier { PLAN_DEVICE, PLAN_HOST, PLAN_NVME, PLAN_TIERS } plan_tier;

/* A buffer lives from instruction `first` to instruction `last`; first is -1 for a permanent one.
 * If last is before first, the buffer lives past the end of the step, until `last` in the next one.
 * plan_find_lives sets both. plan_place sets `offset`: in its tier's block of memory, or in the
 * file. */
typedef struct plan_buffer {
    plan_class class;
    plan_tier tier;
    int32_t first, last;
    int32_t unit, index; /* owner: unit, and its gradient slot or value; -1: none */
    int32_t segment;     /* of parameters, their states and gradients; else -1 */
    int64_t bytes, offset;
    bool aligned;  /* a device buffer of transfers from and to buffers that are offloaded: whoever
                      runs  the plan aligns its start, and `bytes` has room for that */
    bool deferred; /* only deferred instructions use it */
} plan_buffer;

typedef enum plan_action {
    PLAN_FORWARD,   /* a kernel of the forward pass */
    PLAN_RECOMPUTE, /* a kernel of the forward pass again, whose results the backward pass reads */
    PLAN_BACKWARD,  /* a kernel of the backward pass */
    PLAN_DECODE,    /* makes the values of a segment's codes, or sums of gradients of such */
    PLAN_ENCODE,    /* makes codes of this rank's slice of parameters, or of a gradient */
    PLAN_KEEP,      /* this rank's part of a segment's gathered parameters, to PLAN_SECONDARY */
    PLAN_ADD,       /* a partial gradient sum */
    PLAN_COMPRESS,  /* a kernel that makes what is sent of a compressed gradient, or a sum of it */
    PLAN_COUNT,     /* labelled tokens of the global batch, over all ranks */
    PLAN_LOSS,      /* folds the losses of a micro batch */
    PLAN_SQUARES,   /* adds the squares of this rank's part of a segment's gradient */
    PLAN_NORM,      /* adds squares and losses of all ranks; decides whether to update */
    PLAN_UPDATE,    /* the optimizer on one segment */
    PLAN_GATHER,    /* all-gather of slices: x0 is this rank's, y the whole */
    PLAN_REDUCE,    /* reduce-scatter: x0 is the whole, y the sum of this rank's slice */
    PLAN_SUM,       /* y, on each rank, becomes the sum of all ranks' x0, in tree order */
    PLAN_EXCHANGE,  /* runs of x0, one for each rank, become runs of those ranks' y */
    PLAN_READ,      /* from x0 in a file or host memory to y in device memory; skipped, like
                       PLAN_WRITE, if the update does not happen */
    PLAN_WRITE,     /* from x0 in device memory to y in a file or host memory */
    PLAN_SEND,      /* x0 to the same place of stage `peer`, which receives it */
    PLAN_RECEIVE,   /* y from stage `peer` */
    PLAN_WAIT,      /* until transfer `wait` has ended; has its operands */
    PLAN_ACTIONS
} plan_action;

const char *plan_action_name(plan_action action);

/* Transfers from and to a file use the disk queue, those from and to host memory the copy queue. */
typedef enum plan_queue {
    PLAN_COMPUTE,
    PLAN_COMMUNICATION,
    PLAN_DISK,
    PLAN_COPY,
    PLAN_PEER, /* to and from other stages of a pipeline */
    PLAN_NEAR, /* collectives that a step waits for: of tensor and context ranks */
    PLAN_QUEUES
} plan_queue;

const char *plan_queue_name(plan_queue queue);
plan_queue plan_queue_of_span(plan_span span); /* of collectives */

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
    PLAN_SAVED2,
    PLAN_SAVED3,
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

/* Steps that carry an instruction out. Compression of gradients begins after some steps: the list
 * has both ways of adding them up, in one plan of memory. */
typedef enum plan_kind { PLAN_ALL_STEPS, PLAN_PLAIN_STEPS, PLAN_COMPRESSED_STEPS } plan_kind;

typedef struct plan_instruction {
    uint8_t action, queue;
    /* Collectives: the ranks that take part (plan_span), how what they move is coded (plan_code),
     * and the type of sums (base_dtype). */
    uint8_t span, encoding, sum;
    uint8_t kind; /* plan_kind */
    bool accumulate_dw;
    bool deferred;       /* belongs to the update of the step before, which this step carries out */
    int16_t unit;        /* -1: no unit */
    int16_t peer;        /* PLAN_SEND, PLAN_RECEIVE: the other stage */
    int32_t micro_batch; /* of this rank, 0 to k-1; -1: none */
    int32_t node;        /* of the model; -1: none */
    int32_t call;        /* index into calls; -1: no kernel */
    int32_t first_operand, operands;
    int32_t wait;    /* PLAN_WAIT: the transfer to wait for; else -1 */
    int32_t segment; /* PLAN_SQUARES, PLAN_UPDATE: of the model; so also PLAN_SEND, PLAN_RECEIVE,
                        collectives of weights and their gradients; else -1 there */
    int32_t stream;  /* PLAN_SEND, PLAN_RECEIVE: what they carry, the same at both ends */
    int32_t runs;    /* PLAN_EXCHANGE: index into runs: by rank of the span, those that this rank
                        sends, then those that it gets, which lie one behind the other */
    int64_t bytes;   /* PLAN_GATHER, PLAN_REDUCE, PLAN_SUM: of a slice as it travels; PLAN_EXCHANGE:
                        that this rank gets, its own part too; other transfers: all */
    int64_t element; /* PLAN_UPDATE: where its vectors begin, counted over all units of the model;
                        dropout of a tile: where the tile begins, counted over the micro batch */
} plan_instruction;

/* Enough for some ten thousand micro batches; an unlimited list could fill the memory. */
enum { PLAN_INSTRUCTION_LIMIT = 1 << 22 };

typedef enum plan_mode {
    PLAN_TRAIN,
    PLAN_EVALUATE, /* forward and losses */
    PLAN_LOGITS,   /* forward, logits of all rows */
    /* Forward of `length` new tokens of one sequence with a cache, and logits of the last; or of
     * one token of each of several sequences, and the logits of all. */
    PLAN_GENERATE
} plan_mode;

/* Alignment of buffers; and of addresses and file offsets of disk transfers. Copies of host memory
 * move the same whole pages. */
enum { PLAN_ALIGNMENT = 256, PLAN_DISK_ALIGNMENT = 4096 };

/* The inputs of a schedule. */
typedef struct plan_settings {
    sifr_settings step; /* threads, isa, fp16 and the disk's path and aio have no effect here */
    plan_mode mode;
    int64_t cache_length; /* PLAN_GENERATE: positions of a sequence in the cache */
    plan_mesh mesh;
    plan_pipeline pipeline;
    bool logits;              /* PLAN_EVALUATE: logits of all rows as well */
    bool external_parameters; /* parameters and caches belong to another schedule: no room here */
    bool verify; /* check the list after each pass (plan/verify/verify.h); debug builds always do */
    /* For SIFR_RECOMPUTE_AUTO, besides activation_memory: limit of the whole block; 0: no limit.
     * Both 0: everything is kept. */
    int64_t room_bytes;
} plan_settings;

typedef struct plan_schedule {
    const sifr_model *model;
    sifr_model *part; /* the same, where plan_lower made it, of a tensor rank; else NULL */
    device *dev;
    plan_settings settings;

    plan_instruction *instructions;
    plan_operand *operands;
    device_call *calls; /* prepared, without addresses */
    comm_run *runs;
    plan_buffer *buffers;
    size_t instruction_count, instruction_capacity, operand_count, operand_capacity;
    size_t call_count, call_capacity, buffer_count, buffer_capacity, run_count, run_capacity;

    /* Buffers that the engine fills or reads, by segment, value or micro batch; -1 where absent.
     * Only trained segments have masters and states. */
    int32_t *parameters, *masters, *states[OPTIM_STATES]; /* by segment; states: those of the
                                                             optimizer's row */
    int32_t *weight_sums;  /* by segment: of updates by weight, sums of all ranks' parts; else -1 */
    int32_t *whole_values; /* by segment: of updates that read whole weights, what `begin` made of
                              all elements (optim_row); else -1 */
    int64_t *segment_elements; /* padded to whole blocks of each slice; 0: of a segment that this
                                  stage does not read */
    int32_t *tables;           /* by model_table */
    int32_t *inputs[SIFR_INPUTS], *losses; /* by micro batch */
    int32_t *caches;       /* PLAN_GENERATE: by node, 2 each: keys and values, or a state; -1: none.
                              Nodes that read the same keys have the same */
    int32_t numbers;       /* plan_numbers */
    int32_t logits;        /* PLAN_LOGITS, PLAN_GENERATE, plan_settings.logits; else -1 */
    int32_t errors, bases; /* of compressed gradients: errors, and factors of the last step; -1 */
    bool compresses;       /* some steps do; `compressed`: those that are looked at, or run, now */
    bool compressed;
    int32_t scratch;
    int32_t spread; /* quarters of the forward pass that a deferred update takes; 0: not deferred */

    /* Set by plan_place. */
    int64_t total_bytes; /* of the device's one block, which holds all its buffers */
    int64_t host_bytes;  /* of the block of host memory, if separate from the device's; transfers
                            of files may take more (plan_host_bytes) */
    int64_t nvme_bytes;  /* of the file */
    /* Bytes of the device's block, by class, at the instruction with the largest sum. */
    int64_t peak_bytes[PLAN_CLASSES];
    int32_t peak_instruction;
    int64_t largest_bytes[PLAN_CLASSES];       /* the peak of each class by itself */
    int32_t largest_instruction[PLAN_CLASSES]; /* where that is first reached; -1: always */
} plan_schedule;

void plan_free(plan_schedule *schedule); /* NULL is allowed */

#endif
