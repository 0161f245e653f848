/* Ranks and what they exchange. A transport is one file (self.c: one rank, nothing moves) behind
 * one table of functions. Collectives start and are waited for; operands must live and stay
 * untouched until the wait returns. What they delivered is counted where it moves. */
#ifndef COMM_COMM_H
#define COMM_COMM_H

#include <stdint.h>

#include "base/status.h"

typedef struct comm_group comm_group;

typedef enum comm_operation {
    COMM_ALL_GATHER,
    COMM_REDUCE_SCATTER,
    COMM_CONTROL, /* small agreements: counts, norms, hashes */
    COMM_OPERATIONS
} comm_operation;

const char *comm_operation_name(comm_operation operation);

/* What a rank received, by operation, since the group was opened. */
typedef struct comm_ledger {
    struct {
        int64_t calls;
        uint64_t bytes; /* delivered to this rank by others */
        double seconds; /* from start to the end of the wait */
    } operation[COMM_OPERATIONS];
} comm_ledger;

/* A collective under way; `id` says nothing to the caller. Each is waited for exactly once. */
typedef struct comm_handle {
    comm_group *group;
    int32_t id;
} comm_handle;

/* The group of this process alone. */
sifr_status comm_open_self(comm_group **out, sifr_error *error) SIFR_MUST_CHECK;
void comm_close(comm_group *group); /* NULL is harmless */

int32_t comm_rank(const comm_group *group);
int32_t comm_size(const comm_group *group);
const comm_ledger *comm_get_ledger(const comm_group *group);

/* Slice r of `whole` (size x `bytes` long) becomes rank r's `slice`; slice may be that very place.
 */
sifr_status comm_start_all_gather(comm_group *group, const void *slice, int64_t bytes, void *whole,
                                  comm_handle *out, sifr_error *error) SIFR_MUST_CHECK;

/* `slice` becomes the sum over ranks of this rank's slice (`elements` long, FP32) of their `whole`,
 * added in tree order over the ranks; it may be that very place. */
sifr_status comm_start_reduce_scatter(comm_group *group, const float *whole, int64_t elements,
                                      float *slice, comm_handle *out,
                                      sifr_error *error) SIFR_MUST_CHECK;

sifr_status comm_wait(comm_handle handle, sifr_error *error) SIFR_MUST_CHECK;

/* Sums over all ranks, in place; returns when done. */
sifr_status comm_sum(comm_group *group, int64_t *values, int32_t count,
                     sifr_error *error) SIFR_MUST_CHECK;

/* Rank r's `mine` (as many bytes on every rank) becomes part r of `all`, for small agreements;
 * returns when done. */
sifr_status comm_all_gather_control(comm_group *group, const void *mine, int64_t bytes, void *all,
                                    sifr_error *error) SIFR_MUST_CHECK;

#endif
