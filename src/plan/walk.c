#include "plan/walk.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/errors.h"
#include "base/heap.h"

static bool has_stages(plan_walk_order order) {
    return order != PLAN_WALK_BATCH && order != PLAN_WALK_UNIT;
}

/* Names the multiples next to what was given; below the first one there is none. */
static sifr_status refuse_count(int32_t stages, int32_t micro_batches, sifr_error *error) {
    base_assert(stages > 0);
    long long below = micro_batches / stages * stages;
    char lower[32] = "";
    if (below > 0) snprintf(lower, sizeof lower, "%lld or ", below);
    return base_fail(error, SIFR_USAGE,
                     "pipeline: schedule interleaved needs gradient_accumulation_steps that %d "
                     "stages divide, but it is %d; give %s%lld, or schedule 1f1b",
                     (int)stages, (int)micro_batches, lower, below + stages);
}

sifr_status plan_walk_check(const plan_walk_shape *shape, sifr_error *error) {
    int32_t p = shape->stages, v = shape->chunks, k = shape->micro_batches;
    if (p < 1 || v < 1 || k < 1)
        return base_fail(error, SIFR_USAGE,
                         "pipeline: %d stages, %d chunks and %d micro batches; each must be at "
                         "least 1",
                         p, v, k);
    if (p > 1 && !has_stages(shape->order))
        return base_fail(error, SIFR_USAGE,
                         "pipeline: step_order unit has one stage, not %d; "
                         "leave it out, or take step_order batch",
                         p);
    if (v > 1 && shape->order != PLAN_WALK_INTERLEAVED)
        return base_fail(error, SIFR_USAGE,
                         "pipeline: only schedule interleaved has chunks; give \"schedule\": "
                         "\"interleaved\", or chunks 1 in place of %d",
                         v);
    return shape->order == PLAN_WALK_INTERLEAVED && k % p != 0 ? refuse_count(p, k, error)
                                                               : SIFR_OK;
}

/* Appends to a list with room for all of it. */
static void add(plan_walk *walk, plan_walk_pass pass, int32_t chunk, int32_t micro_batch,
                int32_t count) {
    base_assert(chunk >= 0 && micro_batch >= 0 && count >= 1);
    walk->items[walk->count++] =
        (plan_walk_item){.pass = pass, .chunk = chunk, .micro_batch = micro_batch, .count = count};
}

static void whole(const plan_walk_shape *shape, plan_walk *walk) {
    add(walk, PLAN_WALK_FORWARD, 0, 0, shape->micro_batches);
    add(walk, PLAN_WALK_BACKWARD, 0, 0, shape->micro_batches);
}

/* `warm` forward passes, then pairs, then the backward passes that are left. */
static void one_chunk(const plan_walk_shape *shape, int32_t warm, plan_walk *walk) {
    int32_t k = shape->micro_batches;
    for (int32_t j = 0; j < k + warm; j++) {
        if (j < k) add(walk, PLAN_WALK_FORWARD, 0, j, 1);
        if (j >= warm) add(walk, PLAN_WALK_BACKWARD, 0, j - warm, 1);
    }
}

/* As 1F1B; weight gradients wait, at most `pending` of them, so that stage s begins as many
 * backward passes before its first weight gradients as it is behind the first stage. */
static void zero_bubble(const plan_walk_shape *shape, int32_t warm, int32_t pending,
                        plan_walk *walk) {
    int32_t k = shape->micro_batches, done = 0;
    for (int32_t j = 0; j < k + warm; j++) {
        if (j < k) add(walk, PLAN_WALK_FORWARD, 0, j, 1);
        if (j < warm) continue;
        add(walk, PLAN_WALK_BACKWARD, 0, j - warm, 1);
        if (j - warm + 1 - done > pending) add(walk, PLAN_WALK_WEIGHTS, 0, done++, 1);
    }
    while (done < k) add(walk, PLAN_WALK_WEIGHTS, 0, done++, 1);
}

/* Step j of a stage's forward passes, of p micro batches through each chunk in turn. */
static plan_walk_item turn(const plan_walk_shape *shape, plan_walk_pass pass, int32_t j) {
    int32_t p = shape->stages, v = shape->chunks, chunk = j % (p * v) / p;
    base_assert(j >= 0 && j < shape->micro_batches * v);
    return (plan_walk_item){.pass = pass,
                            .chunk = pass == PLAN_WALK_FORWARD ? chunk : v - 1 - chunk,
                            .micro_batch = j / (p * v) * p + j % p,
                            .count = 1};
}

static void interleaved(const plan_walk_shape *shape, int32_t stage, plan_walk *walk) {
    int32_t p = shape->stages, v = shape->chunks, steps = shape->micro_batches * v;
    int32_t warm = 2 * (p - stage - 1) + (v - 1) * p;
    if (warm > steps) warm = steps;
    for (int32_t j = 0; j < steps + warm; j++) {
        if (j < steps) walk->items[walk->count++] = turn(shape, PLAN_WALK_FORWARD, j);
        if (j >= warm) walk->items[walk->count++] = turn(shape, PLAN_WALK_BACKWARD, j - warm);
    }
}

/* All micro batches through a chunk, then through the next. */
static void forward_alone(const plan_walk_shape *shape, plan_walk *walk) {
    int32_t count = shape->order == PLAN_WALK_UNIT ? shape->micro_batches : 1;
    for (int32_t c = 0; c < shape->chunks; c++)
        for (int32_t j = 0; j < shape->micro_batches; j += count)
            add(walk, PLAN_WALK_FORWARD, c, j, count);
}

sifr_status plan_walk_make(const plan_walk_shape *shape, int32_t stage, bool training,
                           plan_walk *out, sifr_error *error) {
    base_assert(stage >= 0 && stage < shape->stages);
    int32_t k = shape->micro_batches;
    int32_t behind = shape->stages - stage - 1, warm = behind < k ? behind : k;
    size_t most = (size_t)k * (size_t)shape->chunks * PLAN_WALK_PASSES + 2;
    *out = (plan_walk){0};
    BASE_TRY(base_alloc(most, sizeof *out->items, &out->items, error));
    if (!training) {
        forward_alone(shape, out);
        return SIFR_OK;
    }
    switch (shape->order) {
    case PLAN_WALK_UNIT:
        whole(shape, out);
        break;
    case PLAN_WALK_GPIPE:
        one_chunk(shape, k, out);
        break;
    case PLAN_WALK_INTERLEAVED:
        interleaved(shape, stage, out);
        break;
    case PLAN_WALK_ZB_H1:
        zero_bubble(shape, warm, stage, out);
        break;
    case PLAN_WALK_BATCH:
    case PLAN_WALK_1F1B:
    case PLAN_WALK_ORDERS:
        one_chunk(shape, warm, out);
        break;
    }
    return SIFR_OK;
}

void plan_walk_free(plan_walk *walk) {
    free(walk->items);
    *walk = (plan_walk){0};
}
