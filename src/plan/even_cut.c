/* A cut of units for the schedule interleaved: of the cuts whose largest part is as small as can
 * be, one with parts as equal as can be; then units move between parts as long as that makes the
 * schedule shorter.
 *
 * With one part a stage, the largest part alone decides how long a step takes: the others are
 * passed through once, whatever their sizes are. With several parts a stage, a step also waits for
 * the sum of a stage's parts, and for the largest part of each turn of micro batches. So cuts are
 * compared by the time that the walks of all stages take, without transfers. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/heap.h"
#include "plan/pipeline.h"

enum {
    /* Of as many micro batches as there are stages: one fills and empties the pipeline, and one
     * goes through the full one. The cut does not depend on how many there are. */
    ROUNDS = 2,
    MOST_PASSES = 1 << 20 /* of a micro batch through a part, over all comparisons */
};

typedef struct cut_search {
    const double *forward, *backward; /* by unit */
    int32_t units, parts, micro_batches;
    const plan_pipeline *pipeline;
    plan_walk *walks; /* by stage */
    double *sums[2];  /* of the units before each one: forward, backward */
    double *ends[2];  /* by part and micro batch: when that pass ends; -1: not yet */
    int64_t passes;   /* left */
} cut_search;

static double part_seconds(const cut_search *c, const int32_t *first, int32_t part, int pass) {
    base_assert(part >= 0 && part < c->parts && first[part] < first[part + 1]);
    return c->sums[pass][first[part + 1]] - c->sums[pass][first[part]];
}

/* When the pass that a stage comes to next may begin; -1: not known yet. */
static double begin_of(const cut_search *c, int32_t part, int pass, int32_t micro_batch) {
    int32_t before = pass == PLAN_WALK_FORWARD ? part - 1 : part + 1;
    if (before < 0 || before == c->parts) return 0;
    return c->ends[pass][before * c->micro_batches + micro_batch];
}

/* The time of a step: each stage takes its passes in their order, as soon as it has what they read.
 */
static double step_seconds(cut_search *c, const int32_t *first) {
    int32_t stages = c->pipeline->stages;
    double clocks[PLAN_MOST_PARTS] = {0}, last = 0;
    size_t at[PLAN_MOST_PARTS] = {0};
    for (int pass = 0; pass < 2; pass++)
        for (int32_t i = 0; i < c->parts * c->micro_batches; i++) c->ends[pass][i] = -1;
    for (bool moved = true; moved;) {
        moved = false;
        for (int32_t s = 0; s < stages; s++) {
            for (; at[s] < c->walks[s].count; at[s]++) {
                const plan_walk_item *item = &c->walks[s].items[at[s]];
                int32_t part = item->chunk * stages + s;
                base_assert(part < c->parts && item->count == 1);
                double begin = begin_of(c, part, (int)item->pass, item->micro_batch);
                if (begin < 0) break;
                if (clocks[s] < begin) clocks[s] = begin;
                clocks[s] += part_seconds(c, first, part, (int)item->pass);
                c->ends[item->pass][part * c->micro_batches + item->micro_batch] = clocks[s];
                moved = true;
            }
            if (last < clocks[s]) last = clocks[s];
        }
    }
    c->passes -= 2 * c->parts * c->micro_batches;
    return last;
}

/* Of all cuts with no part above `most`, the one with the least sum of squares. */
static sifr_status cut_evenly(const cut_search *c, double most, int32_t *first, sifr_error *error) {
    size_t columns = (size_t)c->units + 1;
    double *best; /* by number of parts and of units in them; negative: there is no such cut */
    int32_t *from;
    BASE_TRY(base_alloc((size_t)(c->parts + 1) * columns, sizeof *best, &best, error));
    sifr_status status = base_alloc((size_t)(c->parts + 1) * columns, sizeof *from, &from, error);
    for (size_t i = 1; i < (size_t)(c->parts + 1) * columns; i++) best[i] = -1;
    for (int32_t p = 0; p < c->parts && status == SIFR_OK; p++) {
        for (int32_t u = p; u < c->units; u++) {
            double before = best[(size_t)p * columns + (size_t)u];
            for (int32_t end = u + 1; before >= 0 && end <= c->units - (c->parts - 1 - p); end++) {
                double part = c->sums[0][end] - c->sums[0][u] + c->sums[1][end] - c->sums[1][u];
                size_t to = (size_t)(p + 1) * columns + (size_t)end;
                if (part > most) break;
                if (best[to] >= 0 && best[to] <= before + part * part) continue;
                best[to] = before + part * part;
                from[to] = u;
            }
        }
    }
    if (status == SIFR_OK) {
        base_assert(best[(size_t)c->parts * columns + (size_t)c->units] >= 0);
        first[c->parts] = c->units;
        for (int32_t p = c->parts; p-- > 0;)
            first[p] = from[(size_t)(p + 1) * columns + (size_t)first[p + 1]];
    }
    free(best);
    free(from);
    return status;
}

/* Moves a unit from one part to another: all parts between them move along. False if a part would
 * have none. */
static bool move_unit(const int32_t *first, int32_t parts, int32_t from, int32_t to, int32_t *out) {
    base_assert(from != to && from < parts && to < parts);
    if (first[from + 1] - first[from] < 2) return false;
    memcpy(out, first, (size_t)(parts + 1) * sizeof *out);
    for (int32_t p = from + 1; p <= to; p++) out[p]--;
    for (int32_t p = to + 1; p <= from; p++) out[p]++;
    return true;
}

/* Takes each move that makes the step shorter, until none does. */
static void improve(cut_search *c, int32_t *first, double seconds) {
    int32_t moved[PLAN_MOST_PARTS + 1];
    const double less = 1 - 1e-9;
    for (int32_t i = 0, fruitless = 0; fruitless < c->parts * c->parts && c->passes > 0; i++) {
        int32_t from = i / c->parts % c->parts, to = i % c->parts;
        fruitless++;
        if (from == to || !move_unit(first, c->parts, from, to, moved)) continue;
        double tried = step_seconds(c, moved);
        if (tried >= seconds * less) continue;
        seconds = tried;
        memcpy(first, moved, (size_t)(c->parts + 1) * sizeof *first);
        fruitless = 0;
    }
}

static sifr_status open_search(cut_search *c, sifr_error *error) {
    const plan_pipeline *p = c->pipeline;
    plan_walk_shape shape = {.order = p->order,
                             .stages = p->stages,
                             .chunks = p->chunks,
                             .micro_batches = c->micro_batches};
    BASE_TRY(base_alloc((size_t)p->stages, sizeof *c->walks, &c->walks, error));
    for (int32_t s = 0; s < p->stages; s++)
        BASE_TRY(plan_walk_make(&shape, s, true, &c->walks[s], error));
    for (int pass = 0; pass < 2; pass++) {
        const double *of = pass == PLAN_WALK_FORWARD ? c->forward : c->backward;
        BASE_TRY(base_alloc((size_t)c->units + 1, sizeof(double), &c->sums[pass], error));
        BASE_TRY(base_alloc((size_t)(c->parts * c->micro_batches), sizeof(double), &c->ends[pass],
                            error));
        for (int32_t u = 0; u < c->units; u++) c->sums[pass][u + 1] = c->sums[pass][u] + of[u];
    }
    return SIFR_OK;
}

static void close_search(cut_search *c) {
    for (int32_t s = 0; c->walks && s < c->pipeline->stages; s++) plan_walk_free(&c->walks[s]);
    free(c->walks);
    for (int pass = 0; pass < 2; pass++) {
        free(c->sums[pass]);
        free(c->ends[pass]);
    }
}

/* The largest part of a cut, with room for what rounding does. */
static double largest_part(const cut_search *c, const int32_t *first) {
    double most = 0;
    for (int32_t p = 0; p < c->parts; p++) {
        double part = part_seconds(c, first, p, 0) + part_seconds(c, first, p, 1);
        if (part > most) most = part;
    }
    return most * (1 + 1e-9);
}

sifr_status plan_cut_evenly(const double *forward, const double *backward, int32_t units,
                            plan_pipeline *pipeline, sifr_error *error) {
    cut_search c = {.forward = forward,
                    .backward = backward,
                    .units = units,
                    .parts = plan_parts(pipeline),
                    .micro_batches = ROUNDS * pipeline->stages,
                    .pipeline = pipeline,
                    .passes = MOST_PASSES};
    base_assert(c.parts > 1 && c.parts <= PLAN_MOST_PARTS);
    int32_t even[PLAN_MOST_PARTS + 1];
    sifr_status status = open_search(&c, error);
    if (status == SIFR_OK)
        status = cut_evenly(&c, largest_part(&c, pipeline->first_unit), even, error);
    if (status == SIFR_OK) {
        double before = step_seconds(&c, pipeline->first_unit), after = step_seconds(&c, even);
        if (after <= before)
            memcpy(pipeline->first_unit, even, (size_t)(c.parts + 1) * sizeof *even);
        improve(&c, pipeline->first_unit, after <= before ? after : before);
    }
    close_search(&c);
    return status;
}
