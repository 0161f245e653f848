/* Edits the list of a schedule: appends to it, and replaces it in a pass. */
#ifndef PLAN_LIST_H
#define PLAN_LIST_H

#include "plan/schedule.h"

sifr_status plan_add_buffer(plan_schedule *schedule, plan_class class, int64_t bytes, int32_t unit,
                            int32_t index, bool permanent, int32_t *out,
                            sifr_error *error) SIFR_MUST_CHECK;

/* The same for a segment's parameters, state or gradient. */
sifr_status plan_add_segment_buffer(plan_schedule *schedule, plan_class class, int64_t bytes,
                                    int32_t segment, int32_t index, bool permanent, int32_t *out,
                                    sifr_error *error) SIFR_MUST_CHECK;

/* Adds a device buffer for transfers of `bytes`, in whole pages. */
sifr_status plan_add_disk_buffer(plan_schedule *schedule, int64_t bytes, int32_t unit, int32_t *out,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* Appends an instruction; its operands are those added since the last one. */
sifr_status plan_add_instruction(plan_schedule *schedule, plan_instruction instruction,
                                 sifr_error *error) SIFR_MUST_CHECK;
sifr_status plan_add_operand(plan_schedule *schedule, plan_role role, int32_t buffer,
                             int64_t offset, sifr_error *error) SIFR_MUST_CHECK;

/* Appends a wait of the compute queue for the transfer that is instruction `transfer`, with its
 * operands, so that they live until then. */
sifr_status plan_add_wait(plan_schedule *schedule, int32_t transfer,
                          sifr_error *error) SIFR_MUST_CHECK;

/* A pass takes the old list out of the schedule and appends the new one. */
typedef struct plan_list {
    plan_instruction *instructions;
    plan_operand *operands;
    size_t count;
} plan_list;

plan_list plan_take_list(plan_schedule *schedule);
/* Reserves room for lists of this size, so that growing them does not copy. */
void plan_reserve(plan_schedule *schedule, size_t instructions, size_t operands);
void plan_empty_list(plan_schedule *schedule); /* keeps its memory for another list */
void plan_free_list(plan_list *list);

/* Appends the operands of an instruction of `list`. *out points to them until more are added, so
 * that the caller can replace buffers. */
sifr_status plan_add_operands(plan_schedule *schedule, const plan_list *list,
                              const plan_instruction *of, plan_operand **out,
                              sifr_error *error) SIFR_MUST_CHECK;

/* Appends instruction `index` of `list` unchanged, and sets moved[index]. moved[i] is the new index
 * of old instruction i. */
sifr_status plan_keep(plan_schedule *schedule, const plan_list *list, size_t index, int32_t *moved,
                      sifr_error *error) SIFR_MUST_CHECK;

/* What a collective carries. */
typedef struct plan_collective {
    plan_action action;
    plan_span span;
    plan_code encoding;
    base_dtype sum;      /* PLAN_REDUCE, PLAN_SUM: the type of its result */
    int32_t segment;     /* whose weights, states or gradients they are; -1: of none */
    int32_t unit;        /* without a segment; -1: none */
    int32_t micro_batch; /* -1: none */
    int64_t bytes;       /* of a slice, as it travels; PLAN_EXCHANGE: follows from ... */
    /* ... what this rank sends and gets, by rank of the span. */
    const comm_run *sent, *received;
} plan_collective;

/* Appends its start. Its operands were added before. */
sifr_status plan_add_collective(plan_schedule *schedule, const plan_collective *collective,
                                sifr_error *error) SIFR_MUST_CHECK;

/* The same of a transfer of `bytes` between the device and a buffer that is offloaded. */
sifr_status plan_add_transfer(plan_schedule *schedule, plan_action action, plan_queue queue,
                              int32_t unit, int32_t micro_batch, int64_t bytes,
                              sifr_error *error) SIFR_MUST_CHECK;

/* Whether an instruction of `list` is a gather of stage 3, into a buffer that lives while it is
 * used. */
bool plan_is_gather_for_use(const plan_schedule *schedule, const plan_list *list,
                            const plan_instruction *instruction);

/* Stores a call (prepared here); *out is its index. */
sifr_status plan_add_call(plan_schedule *schedule, device_call call, int32_t *out,
                          sifr_error *error) SIFR_MUST_CHECK;

#endif
