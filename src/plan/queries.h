/* What can be asked of a schedule. */
#ifndef PLAN_QUERIES_H
#define PLAN_QUERIES_H

#include "plan/schedule.h"

/* Whether kernels cannot reach a buffer: it is on disk, or in host memory that is not the device's.
 */
bool plan_is_away(const plan_schedule *schedule, int32_t buffer);
bool plan_is_away_tier(const plan_schedule *schedule, plan_tier tier);
/* That of transfers from and to a buffer that is away. */
plan_queue plan_queue_of(const plan_schedule *schedule, int32_t buffer);
/* Where settings put state. */
plan_tier plan_tier_of(sifr_tier tier);
plan_tier plan_master_tier(const plan_settings *settings);
plan_tier plan_moment_tier(const plan_settings *settings);
bool plan_parameters_away(const plan_schedule *schedule); /* those of some unit */

/* Whether, by first and last (plan_find_lives), a buffer is in the device's memory for a part of
 * the step only. */
bool plan_comes_and_goes(const plan_schedule *schedule, int32_t buffer);

/* Whether a unit's parameters stay whole on every rank at stage 3: small ones, asked for in the
 * model's order, while there is room; *room begins as transfers.model_persistence. */
bool plan_persists(const plan_schedule *schedule, int32_t unit, int64_t *room);

/* Whether the settings have state away that updates move, in both directions beside them, and
 * parameters are not: the same on all ranks. And whether this rank's update writes some of it,
 * which it does not where all of its slices is frozen or stays. */
bool plan_may_delay_update(const plan_schedule *schedule);
bool plan_update_writes(const plan_schedule *schedule);

/* Bytes that a step reads from disk and writes there; that it copies from host memory and to it. */
void plan_disk(const plan_schedule *schedule, int64_t *read, int64_t *written);
void plan_copies(const plan_schedule *schedule, int64_t *read, int64_t *written);

/* Bytes of the file (PLAN_NVME) or of host memory (PLAN_HOST) by class; together nvme_bytes or
 * host_bytes. */
void plan_away_classes(const plan_schedule *schedule, plan_tier tier, int64_t bytes[PLAN_CLASSES]);

/* Bytes that a step delivers to this rank by gathers and by reductions: padded elements x (N-1)/N x
 * bytes of what travels, for each pass over them. */
void plan_wire(const plan_schedule *schedule, int64_t *gathered, int64_t *reduced);

/* Gathers and reductions that a step starts; 0 for one rank. */
void plan_calls(const plan_schedule *schedule, int64_t *gathers, int64_t *reductions);

base_dtype plan_dtype(const plan_settings *settings);      /* of parameters and activations */
int64_t plan_cache_rows(const plan_settings *settings);    /* of all sequences of a batch */
bool plan_narrow_gradients(const plan_settings *settings); /* sums of gradients have 16 bits */
bool plan_has_masters(const plan_settings *settings);      /* beside the parameters */
base_dtype plan_moment_type(const plan_settings *settings);

/* Index in the global batch of this rank's micro batch. It seeds what is drawn for the micro batch
 * and places it in the tree of sums, so both are those of one rank with all micro batches. */
int32_t plan_global_micro_batch(const plan_settings *settings, int32_t rank, int32_t micro_batch);

/* A line for each instruction, for people, through `line` (without newline). */
void plan_dump(const plan_schedule *schedule, void (*line)(void *user, const char *text),
               void *user);

/* Bytes of memory that a buffer of so many takes: up to where the next one begins. */
int64_t plan_room(int64_t bytes);

#endif
