/* The updates of a list whose state is offloaded, cut into sub-groups: what is read, updated and
 * written at a time. For pass_offload_optimizer.c.
 *
 * Transfers move whole pages, and a page of 16-bit parameters is two blocks. So sub-groups end on
 * pages. A rank's slice of a segment has its pages for itself; updates of single weights have not,
 * and those that follow each other in a segment are cut together. An optimizer that goes twice over
 * a segment reads its state twice: what the first kernel writes, the second may read. */
#ifndef PLAN_SUB_GROUPS_H
#define PLAN_SUB_GROUPS_H

#include "plan/list.h"
#include "plan/schedule.h"

/* Kinds of state that an update uses. */
typedef enum plan_state_part {
    PART_MASTER, /* weights that the update changes: masters, or the parameters themselves */
    PART_NARROW, /* 16-bit parameters beside masters, which the update only writes */
    PART_STATE,  /* the optimizer's first */
    PART_GRADIENT = PART_STATE + OPTIM_STATES, /* which the update only reads */
    PARTS
} plan_state_part;

/* A sub-group: elements first ... first + elements - 1 of a rank's slice of a segment. */
typedef struct plan_sub_group {
    int32_t update, end; /* old instructions update ... end - 1 change some of them */
    int64_t first, elements;
    int32_t after;         /* the last sub-group before it that writes what it reads; -1: none */
    int32_t reads[PARTS];  /* new instructions; -1: none */
    int32_t writes[PARTS]; /* new instructions still running; -1: none */
} plan_sub_group;

typedef struct plan_updates {
    plan_schedule *s;
    plan_list old; /* the list before the pass */
    plan_sub_group *groups;
    size_t count, capacity;
    int64_t usual;          /* elements of a group if the settings give no size */
    int64_t longest[PARTS]; /* bytes of a group's transfer; 0: this kind is never offloaded */
} plan_updates;

/* Whole pages of a buffer that is offloaded. */
typedef struct plan_pages {
    int64_t at, bytes;
} plan_pages;

plan_state_part plan_state_part_of(const plan_operand *operand);

/* Elements of an update, and where they begin in the rank's slice of its segment, which is what a
 * buffer that is offloaded holds. */
int64_t plan_update_elements(const plan_updates *updates, const plan_instruction *update);
int64_t plan_update_first(const plan_updates *updates, const plan_instruction *update);

/* Bytes of an operand's values for so many elements, from the start of one of its values on. */
int64_t plan_state_bytes(const plan_updates *updates, const plan_instruction *update,
                         const plan_operand *operand, int64_t elements);
/* Where a group's values of an operand are in its buffer. */
plan_pages plan_state_pages(const plan_updates *updates, const plan_sub_group *group,
                            const plan_operand *operand);

/* Whether an operand is offloaded and the update reads it, or writes it. */
bool plan_state_is_read(const plan_updates *updates, const plan_instruction *update,
                        const plan_operand *operand);
bool plan_state_is_written(const plan_updates *updates, const plan_instruction *update,
                           const plan_operand *operand);

/* Sets groups, count and longest; `groups` is the caller's to free. */
sifr_status plan_cut_updates(plan_updates *updates, sifr_error *error) SIFR_MUST_CHECK;

#endif
