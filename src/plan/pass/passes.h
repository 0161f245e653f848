/* The steps that make and rewrite a schedule, in the order of their calls: lowering, tiers, the
 * passes (each in its own file), memory. */
#ifndef PLAN_PASSES_H
#define PLAN_PASSES_H

#include "plan/schedule.h"

/* Lowers a finished model. Calls device_prepare for every kernel, so the size of the scratch is
 * known; takes no device memory. */
sifr_status plan_lower(const sifr_model *model, device *dev, const plan_settings *settings,
                       plan_schedule **out, sifr_error *error) SIFR_MUST_CHECK;
/* The same for each stage of a pipeline, for the ranks at this rank's place in its stage. `out` has
 * an entry for each stage; the caller frees them, also after a failure. */
sifr_status plan_lower_stages(const sifr_model *model, device *dev, const plan_settings *settings,
                              plan_schedule **out, sifr_error *error) SIFR_MUST_CHECK;

/* Sets the tier of each buffer from settings.offload. Call it before the passes. */
void plan_assign_tiers(plan_schedule *schedule);

/* Makes the values of weights that are held as codes where they are used. Before plan_pass_zero. */
sifr_status plan_pass_decode(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* The ZeRO stage of the settings as a pass over a lowered schedule: cuts states into slices, adds
 * gathers and reductions (docs/schedule.md, "ZeRO"). Does nothing for one rank. */
sifr_status plan_pass_zero(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* Copies of the state: adds the sums of gradients of all copies, slice by slice. After
 * plan_pass_zero; does nothing for one copy. */
sifr_status plan_pass_replicas(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* PowerSGD: adds the way of compressed steps to that of plain ones. After plan_pass_replicas;
 * SIFR_USAGE where it is not built for the settings. */
sifr_status plan_pass_compress(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* Tensor ranks: leaves the squares of what all have alike to the first of them. After
 * plan_pass_replicas; does nothing for one tensor rank. */
sifr_status plan_pass_tensors(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* Tensor ranks: cuts inputs of units that are kept for the backward pass, with
 * partition_activations. Before plan_pass_overlap. */
sifr_status plan_pass_cut_activations(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* For passes: appends the conversion of `elements` fp32 elements of a gradient to
 * communication_data_type. *out is the new buffer of the converted elements. */
sifr_status plan_add_narrow(plan_schedule *schedule, int32_t buffer, int64_t offset,
                            int64_t elements, int32_t micro_batch, int32_t *out,
                            sifr_error *error) SIFR_MUST_CHECK;

/* Stage 3: keeps gathered parameters that are used again soon. After plan_pass_replicas. */
sifr_status plan_pass_reuse(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* hpZ: gathers a segment again, in the same step, from a second copy among PLAN_HOSTS. After
 * plan_pass_reuse. */
sifr_status plan_pass_secondary(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* Starts transfers early and waits for them late. After plan_pass_secondary; does nothing for one
 * rank. */
sifr_status plan_pass_overlap(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* qwZ: gathers of parameters carry codes. After plan_pass_overlap. */
sifr_status plan_pass_quantise(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* qgZ: reductions of gradients to slices become exchanges of codes. After plan_pass_overlap;
 * SIFR_USAGE below stage 2, and beside communication_data_type. */
sifr_status plan_pass_quantise_sums(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* Pipelines: starts each receive when the one before it has arrived, and waits for it before its
 * use; waits for each send before the next one to the same stage. After plan_pass_overlap. */
sifr_status plan_pass_stages(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* Offloaded parameters: a slice is read before its gather, as far ahead as offload.slices allows.
 * After plan_pass_overlap; SIFR_USAGE if offload.slices or offload.most_slice is too small. */
sifr_status plan_pass_offload_parameters(plan_schedule *schedule,
                                         sifr_error *error) SIFR_MUST_CHECK;

/* Offloaded gradients: a slice of sums is written once it is final, after its squares are taken,
 * and the update reads it back. After plan_pass_offload_parameters. */
sifr_status plan_pass_offload_gradients(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* Offloaded activations: results kept for the backward pass are written during the forward pass and
 * read ahead of the backward pass, through a window whose size follows from the model. After
 * plan_pass_offload_gradients. */
sifr_status plan_pass_offload_activations(plan_schedule *schedule,
                                          sifr_error *error) SIFR_MUST_CHECK;

/* Offloaded optimizer state: each update becomes reads, updates and writes of sub-groups, which use
 * a few buffers in turn. After plan_pass_offload_activations; SIFR_USAGE if offload.buffers are too
 * few. */
sifr_status plan_pass_offload_optimizer(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* If plan_may_delay_update: moves the instructions after the norm into the next step, beside its
 * forward pass. Call it with spread -1 on the first rank, which chooses schedule->spread: the
 * widest one that the peak of memory allows. Other ranks get that value, since collectives must
 * come in one order on all ranks; if it is 0, they skip the pass. Includes plan_memory. After
 * plan_pass_offload_optimizer. */
sifr_status plan_pass_delay_update(plan_schedule *schedule, int32_t spread,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* Finds first and last of all buffers, from the list. */
void plan_find_lives(plan_schedule *schedule);
/* Computes offsets and the peak by class from the current lifetimes. */
sifr_status plan_place(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;
/* plan_find_lives and plan_place. */
sifr_status plan_memory(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

#endif
