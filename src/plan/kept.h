/* A summary for users: the results that a schedule keeps for the backward pass and those that it
 * recomputes, by op.
 */
#ifndef PLAN_KEPT_H
#define PLAN_KEPT_H

#include "plan/price/price.h"

/* The ops of one name, in all units: "attention", "linear mlp.up_proj". */
typedef struct plan_kept_row {
    char name[96];
    int32_t kept, again; /* units in which a micro batch's result is kept, or recomputed */
    int64_t bytes;       /* kept for one micro batch */
    double seconds;      /* predicted recomputation time of a step */
} plan_kept_row;

typedef struct plan_kept {
    plan_kept_row *rows;
    size_t count, capacity;
    plan_kept_row inputs, all; /* inputs: what other units read */
} plan_kept;

/* Fills a zeroed *out; plan_kept_free frees its rows, even after a failure. */
sifr_status plan_kept_find(const plan_schedule *schedule, const plan_machine *machine,
                           plan_kept *out, sifr_error *error) SIFR_MUST_CHECK;
/* Writes "activations take 1.1 GiB of the 1.2 GiB that they may; of 84 results that the backward
 * pass reads, 60 are kept, and recomputing the others should take 0.21 s of a step of 3.1 s" to
 * `out`; false if memory ran out. */
bool plan_kept_describe(const plan_schedule *schedule, const plan_machine *machine, char *out,
                        size_t size);
void plan_kept_free(plan_kept *kept);

#endif
