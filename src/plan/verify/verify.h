/* Invariants of every schedule, checked on its list alone. Debug builds check each plan after every
 * pass, up to 65,536 tokens a micro batch. settings.verify turns the checks on for any plan, as the
 * tests do. A fault is SIFR_FAILED, with its instructions and its buffer: a bug of the planner, not
 * an error of the user. */
#ifndef PLAN_VERIFY_H
#define PLAN_VERIFY_H

#include "plan/schedule.h"

/* Checks a list between passes: operands lie inside their buffers, nothing is read before it is
 * written, waits name an earlier transfer. */
sifr_status plan_verify_list(const plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* Checks a finished plan: the list, and that every transfer is waited for, buffers are live while
 * they are used, live buffers do not overlap, and kernels can reach their operands; then
 * plan_check_order and plan_check_content. */
sifr_status plan_verify(const plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* Checks the plans of all ranks of a group, by rank: the same collectives of the same sizes in the
 * same order. */
sifr_status plan_verify_ranks(const plan_schedule *const *schedules, size_t count,
                              sifr_error *error) SIFR_MUST_CHECK;

/* Checks the plans of all stages of a pipeline, in order, for ranks at the same place in their
 * stages: each transfer has its other end, of the same size, and no stage waits for another for
 * ever. */
sifr_status plan_verify_stages(const plan_schedule *const *schedules, size_t count,
                               sifr_error *error) SIFR_MUST_CHECK;

/* Makes the plans of all stages, for ranks at this rank's place in its stage, and checks them as
 * plan_verify_stages does. */
sifr_status plan_check_stages(const sifr_model *model, device *dev, const plan_settings *settings,
                              sifr_error *error) SIFR_MUST_CHECK;

#endif
