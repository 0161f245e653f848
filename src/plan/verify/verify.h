/* What must hold of every schedule, checked on its list alone. Debug builds check each plan that is
 * made, after every pass, up to 65,536 tokens a micro batch; settings.verify asks for any plan, as
 * the tests do. A fault is
 * SIFR_FAILED with the instructions and the buffer that it is about: the planner is wrong, not who
 * uses it. */
#ifndef PLAN_VERIFY_H
#define PLAN_VERIFY_H

#include "plan/schedule.h"

/* A list as it is between passes: operands lie inside their buffers, nothing is read before it is
 * written, waits name a transfer that comes before them. */
sifr_status plan_verify_list(const plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* A finished plan: that, and every transfer is waited for, buffers are there while they are used,
 * what is there at once does not overlap, kernels reach what they use; and plan_check_order. */
sifr_status plan_verify(const plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* The plans of all ranks of a group, by rank: the same collectives of the same sizes in the same
 * order. */
sifr_status plan_verify_ranks(const plan_schedule *const *schedules, size_t count,
                              sifr_error *error) SIFR_MUST_CHECK;

#endif
