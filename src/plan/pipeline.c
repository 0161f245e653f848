#include "plan/pipeline.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/errors.h"
#include "base/heap.h"

int32_t plan_parts(const plan_pipeline *pipeline) {
    return pipeline->stages > 1 ? pipeline->stages * pipeline->chunks : 1;
}

int32_t plan_part_of(const plan_pipeline *pipeline, int32_t unit) {
    base_assert(unit >= 0);
    int32_t part = plan_parts(pipeline) - 1;
    if (part == 0) return 0;
    while (pipeline->first_unit[part] > unit) part--;
    return part;
}

int32_t plan_stage_of(const plan_pipeline *pipeline, int32_t unit) {
    return pipeline->stages > 1 ? plan_part_of(pipeline, unit) % pipeline->stages : 0;
}

bool plan_reads_segment(const sifr_model *model, const plan_pipeline *pipeline, int32_t stage,
                        int32_t segment) {
    base_assert(segment >= 0 && (size_t)segment < model->segment_count);
    if (plan_stage_of(pipeline, model->segments[segment].unit) == stage) return true;
    for (size_t n = 0; n < model->node_count; n++) {
        const model_node *node = &model->nodes[n];
        bool reads = node->w[0] >= 0 && model->weights[node->w[0]].segment == segment;
        if (reads && plan_stage_of(pipeline, node->unit) == stage) return true;
    }
    return false;
}

bool plan_has_unit(const plan_pipeline *pipeline, int32_t unit) {
    return plan_stage_of(pipeline, unit) == pipeline->stage;
}

const char *plan_pipeline_text(const plan_pipeline *p, char out[PLAN_PIPELINE_LENGTH]) {
    base_assert((int)p->order >= 0 && p->order < PLAN_WALK_ORDERS);
    static const char *const names[PLAN_WALK_ORDERS] = {"batch", "unit",        "gpipe",
                                                        "1f1b",  "interleaved", "zb-h1"};
    int32_t parts = plan_parts(p);
    size_t used =
        (size_t)snprintf(out, PLAN_PIPELINE_LENGTH, "schedule %s, units", names[p->order]);
    for (int32_t i = 0; i < parts && parts > 1; i++) {
        if (used + 48 > PLAN_PIPELINE_LENGTH) {
            snprintf(out + used, PLAN_PIPELINE_LENGTH - used, " ...");
            break;
        }
        int32_t first = p->first_unit[i], last = p->first_unit[i + 1] - 1;
        used +=
            (size_t)snprintf(out + used, PLAN_PIPELINE_LENGTH - used, "%s %d", i ? "," : "", first);
        if (last > first)
            used += (size_t)snprintf(out + used, PLAN_PIPELINE_LENGTH - used, "-%d", last);
    }
    return out;
}

/* Whether `parts` runs of units, none above `most`, hold all units; the runs are as long as they
 * can be, but leave a unit for each later one. */
static bool fits(const double *weights, int32_t units, int32_t parts, double most, int32_t *first) {
    base_assert(parts >= 1 && parts <= units);
    int32_t unit = 0;
    for (int32_t p = 0; p < parts; p++) {
        double sum = 0;
        first[p] = unit;
        while (unit < units - (parts - 1 - p) && (unit == first[p] || sum + weights[unit] <= most))
            sum += weights[unit++];
        if (sum > most) return false;
    }
    first[parts] = units;
    return unit == units;
}

/* The sums of all runs of units are the candidates for the largest part; bisection over them, as
 * numbers, ends at one of them. */
sifr_status plan_cut_units(const double *weights, int32_t units, plan_pipeline *pipeline,
                           sifr_error *error) {
    int32_t parts = plan_parts(pipeline), first[PLAN_MOST_PARTS + 1];
    double low = 0, high = 0;
    if (parts > PLAN_MOST_PARTS)
        return base_fail(error, SIFR_USAGE, "pipeline: %d stages of %d chunks; at most %d parts",
                         pipeline->stages, pipeline->chunks, PLAN_MOST_PARTS);
    if (parts > units)
        return base_fail(error, SIFR_USAGE,
                         "pipeline: %d stages of %d chunks need %d units, but the model has %d "
                         "(blocks, embedding and head); give fewer",
                         pipeline->stages, pipeline->chunks, parts, units);
    for (int32_t u = 0; u < units; u++) {
        high += weights[u];
        if (weights[u] > low) low = weights[u];
    }
    for (int i = 0; i < 128 && low < high; i++) {
        double middle = low + (high - low) / 2;
        if (middle >= high) break;
        if (fits(weights, units, parts, middle, first))
            high = middle;
        else
            low = middle;
    }
    if (!fits(weights, units, parts, high * (1 + 1e-12), first))
        return base_fail(error, SIFR_FAILED, "pipeline: the units could not be shared out");
    for (int32_t p = 0; p <= parts; p++) pipeline->first_unit[p] = first[p];
    return SIFR_OK;
}
