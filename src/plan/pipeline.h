/* Which units of the model belong to which stage of a pipeline. The units are cut into stages x
 * chunks parts, part i on stage i mod stages; plan/walk.h has the order of work over them. */
#ifndef PLAN_PIPELINE_H
#define PLAN_PIPELINE_H

#include "model/description.h"
#include "plan/walk.h"

enum { PLAN_MOST_PARTS = 256 };

/* All zero: one stage with all units. */
typedef struct plan_pipeline {
    int32_t stage, stages, chunks;
    plan_walk_order order;
    int32_t first_unit[PLAN_MOST_PARTS + 1]; /* by part; then the number of units */
} plan_pipeline;

/* Fills first_unit for stages x chunks parts such that the largest part is as small as it can be,
 * and of such cuts the one whose earlier parts are largest. `weights` has a number for each unit,
 * not negative. Each part has a unit; SIFR_USAGE if there are more parts than units. */
sifr_status plan_cut_units(const double *weights, int32_t units, plan_pipeline *pipeline,
                           sifr_error *error) SIFR_MUST_CHECK;

/* Changes a cut that plan_cut_units made for schedule interleaved: to parts of more equal size, if
 * the step is shorter with them (even_cut.c). `forward` and `backward` have the time of each unit,
 * in any measure. */
sifr_status plan_cut_evenly(const double *forward, const double *backward, int32_t units,
                            plan_pipeline *pipeline, sifr_error *error) SIFR_MUST_CHECK;

int32_t plan_parts(const plan_pipeline *pipeline);
int32_t plan_part_of(const plan_pipeline *pipeline, int32_t unit);
int32_t plan_stage_of(const plan_pipeline *pipeline, int32_t unit);
/* Whether a stage reads the weights of a segment: those of its own units, and with a tied head also
 * those of the embedding. */
bool plan_reads_segment(const sifr_model *model, const plan_pipeline *pipeline, int32_t stage,
                        int32_t segment);
/* "schedule 1f1b, units 0-3, 4-7 by stage"; with many stages only the first ones are listed. */
enum { PLAN_PIPELINE_LENGTH = 192 };
const char *plan_pipeline_text(const plan_pipeline *pipeline, char out[PLAN_PIPELINE_LENGTH]);
bool plan_has_unit(const plan_pipeline *pipeline, int32_t unit); /* whether it is of this stage */

#endif
