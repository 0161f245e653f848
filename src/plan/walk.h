/* The order of work of a step: which chunk of the model's units runs forward or backward on which
 * micro batch. A small generator makes it; lowering follows it.
 *
 * A pipeline cuts the units of the model into stages x chunks parts; stage s of p has parts s,
 * p + s, 2p + s …, its chunks 0, 1, 2 …. Without a pipeline there is one part, of all units.
 * In every order each part's backward passes come in rising micro batches, so the gradients are
 * added in one order, and have the same bits, whatever the pipeline is. */
#ifndef PLAN_WALK_H
#define PLAN_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sifr/settings.h"

typedef enum plan_walk_pass {
    PLAN_WALK_FORWARD,
    PLAN_WALK_BACKWARD, /* zb-h1: the gradients of activations alone */
    PLAN_WALK_WEIGHTS,  /* zb-h1: the gradients of weights that BACKWARD left out */
    PLAN_WALK_PASSES
} plan_walk_pass;

typedef enum plan_walk_order {
    PLAN_WALK_BATCH,       /* a micro batch forward and backward, then the next: one stage */
    PLAN_WALK_UNIT,        /* all micro batches through a unit, then the next unit: one stage */
    PLAN_WALK_GPIPE,       /* all forward, then all backward (Huang et al., 2019) */
    PLAN_WALK_1F1B,        /* one forward, one backward (PipeDream-Flush, Narayanan et al., 2021) */
    PLAN_WALK_INTERLEAVED, /* 1F1B over several chunks a stage (Narayanan et al., SC21) */
    PLAN_WALK_ZB_H1,       /* 1F1B with weight gradients in the bubble (Qi et al., 2401.10241) */
    PLAN_WALK_ORDERS
} plan_walk_order;

/* One pass of `count` micro batches through a chunk, unit by unit. */
typedef struct plan_walk_item {
    plan_walk_pass pass;
    int32_t chunk;
    int32_t micro_batch, count; /* the first one; 1, or all of them in PLAN_WALK_UNIT */
} plan_walk_item;

typedef struct plan_walk_shape {
    plan_walk_order order;
    int32_t stages, chunks; /* p, v */
    int32_t micro_batches;  /* k */
} plan_walk_shape;

typedef struct plan_walk {
    plan_walk_item *items;
    size_t count;
} plan_walk;

/* Whether there is such a walk; the error names what does not fit, and what would. */
sifr_status plan_walk_check(const plan_walk_shape *shape, sifr_error *error) SIFR_MUST_CHECK;

/* The walk of one stage; belongs to the caller, who frees it with plan_walk_free. `training` false:
 * the forward passes alone, chunk by chunk. The shape must have passed plan_walk_check. */
sifr_status plan_walk_make(const plan_walk_shape *shape, int32_t stage, bool training,
                           plan_walk *out, sifr_error *error) SIFR_MUST_CHECK;
void plan_walk_free(plan_walk *walk);

#endif
