/* What makes a schedule and rewrites it, in the order in which it is called: lowering, tiers, the
 * passes (each in a file of its own), memory. */
#ifndef PLAN_PASSES_H
#define PLAN_PASSES_H

#include "plan/schedule.h"

/* Lowers a finished model. device_prepare is called for every kernel, so that the scratch is known;
 * no memory of the device is taken. */
sifr_status plan_lower(const sifr_model *model, device *dev, const plan_settings *settings,
                       plan_schedule **out, sifr_error *error) SIFR_MUST_CHECK;

/* Where state is: the tier of each buffer, as settings.offload says. Before the passes. */
void plan_assign_tiers(plan_schedule *schedule);

/* The ZeRO stage of the settings as a pass over a lowered schedule: which states are slices, where
 * the schedule gathers and reduces (docs/architecture.md, "ZeRO"). Nothing for one rank. */
sifr_status plan_pass_zero(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* Stage 3: gathered parameters that are soon used again stay. After plan_pass_zero. */
sifr_status plan_pass_reuse(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* Transfers start early and are waited for late. After plan_pass_reuse; nothing for one rank. */
sifr_status plan_pass_overlap(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* Parameters away: a slice is read before its gather starts, ahead of it as far as
 * offload.slices allows. After plan_pass_overlap; SIFR_USAGE where offload.slices or
 * offload.most_slice are too few. */
sifr_status plan_pass_offload_parameters(plan_schedule *schedule,
                                         sifr_error *error) SIFR_MUST_CHECK;

/* Gradients away: a slice of sums is written once it is final, after its squares are taken, and
 * the update finds it there. After plan_pass_offload_parameters. */
sifr_status plan_pass_offload_gradients(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* Activations away: what the forward pass leaves for the backward pass is written behind the
 * one and read ahead of the other, through a window worked out from the model. After
 * plan_pass_offload_gradients. */
sifr_status plan_pass_offload_activations(plan_schedule *schedule,
                                          sifr_error *error) SIFR_MUST_CHECK;

/* State away: each update becomes reads, updates and writes of sub-groups that go through a few
 * buffers in turn. After plan_pass_offload_activations; SIFR_USAGE where offload.buffers are too
 * few. */
sifr_status plan_pass_offload_optimizer(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* Where plan_may_delay_update: what follows the norm is carried out by the next step, beside its
 * forward pass. `spread` is schedule->spread of the first rank, since all ranks exchange what they
 * do in the same order; there it is -1: as far as the peak of memory allows. Not where the first
 * rank's is 0. Does plan_memory, too. After plan_pass_offload_optimizer. */
sifr_status plan_pass_delay_update(plan_schedule *schedule, int32_t spread,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* first and last of all buffers, by the list. */
void plan_find_lives(plan_schedule *schedule);
/* Offsets and the peak by class, of lifetimes as they are. */
sifr_status plan_place(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;
/* Both. */
sifr_status plan_memory(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

#endif
