/* What an instruction reads and writes, in bytes of buffers: what its kernel's contract says
 * (device/device.h), and what transfers move. For what checks or draws a list. */
#ifndef PLAN_ACCESS_H
#define PLAN_ACCESS_H

#include "plan/schedule.h"

/* `rows` pieces of `bytes` bytes; `pitch` bytes lie between the starts of two of them. One row is
 * all of a matrix whose rows lie one after the other. */
typedef struct plan_access {
    int32_t buffer;
    plan_role role; /* PLAN_ROLES: the kernel's scratch */
    bool reads, writes;
    int64_t offset, bytes, rows, pitch;
} plan_access;

enum { PLAN_ACCESSES = PLAN_ROLES + 1 }; /* of one instruction, at most */

/* Returns how many. None of a wait, nor of a count of labels. */
int plan_accesses(const plan_schedule *schedule, const plan_instruction *instruction,
                  plan_access out[PLAN_ACCESSES]);

int64_t plan_access_end(const plan_access *access); /* in its buffer: behind its last byte */

/* "x0", "scratch" */
const char *plan_access_name(const plan_access *access);

bool plan_is_transfer(const plan_instruction *instruction);

#endif
