/* The bytes of buffers that an instruction reads and writes, from its kernel's contract
 * (device/kernels.def) or its transfer. For checks and drawings of a list. */
#ifndef PLAN_ACCESS_H
#define PLAN_ACCESS_H

#include "plan/schedule.h"

/* `rows` pieces of `bytes` bytes, with `pitch` bytes between the starts of two pieces. A contiguous
 * matrix is one row. */
typedef struct plan_access {
    int32_t buffer;
    plan_role role; /* PLAN_ROLES: the kernel's scratch */
    bool reads, writes;
    int64_t offset, bytes, rows, pitch;
} plan_access;

enum { PLAN_ACCESSES = PLAN_ROLES + 1 }; /* most of one instruction */

/* Returns the number of accesses. Waits and counts of labels have none. */
int plan_accesses(const plan_schedule *schedule, const plan_instruction *instruction,
                  plan_access out[PLAN_ACCESSES]);

int64_t plan_access_end(const plan_access *access); /* offset in its buffer, after the last byte */

/* "x0", "scratch" */
const char *plan_access_name(const plan_access *access);

bool plan_is_transfer(const plan_instruction *instruction);

#endif
