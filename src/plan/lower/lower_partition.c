/* How the units of a model are shared out among the stages of a pipeline, and what goes with
 * stages. */
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "plan/lower/lower.h"
#include "plan/pass/passes.h"
#include "plan/price/price.h"
#include "plan/queries.h"

static plan_walk_order order_of(sifr_pipeline_schedule schedule) {
    switch (schedule) {
    case SIFR_SCHEDULE_GPIPE:
        return PLAN_WALK_GPIPE;
    case SIFR_SCHEDULE_INTERLEAVED:
        return PLAN_WALK_INTERLEAVED;
    case SIFR_SCHEDULE_ZB_H1:
        return PLAN_WALK_ZB_H1;
    default:
        return PLAN_WALK_1F1B;
    }
}

static sifr_status refuse(const char *what, const char *remedy, sifr_error *error) {
    return base_fail(error, SIFR_USAGE, "pipeline: %s with stages is not supported yet; %s", what,
                     remedy);
}

/* What is not built refuses by name. */
static sifr_status check_beside(const plan_settings *settings, sifr_error *error) {
    const sifr_settings *step = &settings->step;
    if (settings->mode == PLAN_GENERATE) return refuse("generation", "start it on one rank", error);
    if (step->step_order == SIFR_STEP_UNIT)
        return refuse("step_order unit", "leave it out: the schedule of stages is the order",
                      error);
    bool by_capacity = step->recompute == SIFR_RECOMPUTE_AUTO && step->activation_memory == 0;
    if (by_capacity)
        return refuse("recompute auto without activation_memory",
                      "give that, or recompute unit or none", error);
    if (step->tile_tokens > 0 && step->pipeline.schedule == SIFR_SCHEDULE_ZB_H1)
        return refuse("tile_tokens beside zb-h1", "leave it out, or give 1f1b or interleaved",
                      error);
    return SIFR_OK;
}

/* --- weights of units --- */

static void weigh_parameters(const sifr_model *model, double *weights) {
    for (size_t u = 0; u < model->unit_count; u++) weights[u] = (double)model->units[u].elements;
}

/* By unit. */
typedef struct unit_weights {
    double *all, *forward, *backward; /* the latter two where time is what is equal */
} unit_weights;

/* This rank's tensors and contexts, which the model may be cut for already, and no other axis. */
static plan_mesh mesh_of_part(const plan_mesh *mesh) {
    plan_mesh one = plan_mesh_flat(1, 0);
    for (int a = PLAN_AXIS_CONTEXT; a <= PLAN_AXIS_TENSOR; a++) {
        one.ranks[a] = mesh->ranks[a];
        one.place[a] = mesh->place[a];
    }
    return one;
}

/* Operations of products, and bytes as if each took as long as 10 of them: of one micro batch,
 * forward and backward, on one rank. All ranks find the same. */
static sifr_status weigh_time(const sifr_model *model, device *dev, const plan_settings *settings,
                              unit_weights *weights, sifr_error *error) {
    static const double operations_a_byte = 10;
    plan_settings one = *settings;
    plan_schedule *s;
    one.mesh = mesh_of_part(&settings->mesh);
    one.pipeline = (plan_pipeline){.stages = 1, .chunks = 1};
    one.step.zero.stage = 0;
    one.step.zero.quantized_gradients = false; /* nothing is sent */
    one.step.gradient_accumulation_steps = 1;
    one.step.step_order = SIFR_STEP_BATCH;
    one.step.recompute = SIFR_RECOMPUTE_NONE;
    one.step.offload.param.device = one.step.offload.optimizer.device = SIFR_TIER_NONE;
    one.step.offload.gradients = SIFR_TIER_NONE;
    one.verify = false;
    BASE_TRY(lower_list(model, dev, &one, NULL, &s, error));
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        bool pass = in->action == PLAN_FORWARD || in->action == PLAN_BACKWARD;
        if (in->call < 0 || in->node < 0 || !pass) continue;
        double operations, bytes;
        plan_cost(s, &s->calls[in->call], &operations, &bytes);
        double *of = in->action == PLAN_FORWARD ? weights->forward : weights->backward;
        of[model->nodes[in->node].unit] +=
            operations > bytes * operations_a_byte ? operations : bytes * operations_a_byte;
    }
    bool again = settings->step.recompute != SIFR_RECOMPUTE_NONE;
    for (size_t u = 0; u < model->unit_count; u++) {
        weights->all[u] = weights->forward[u] + weights->backward[u];
        if (again) weights->backward[u] += weights->forward[u];
    }
    plan_free(s);
    return SIFR_OK;
}

static sifr_status weigh_type(const sifr_model *model, const char *expression, double *weights,
                              sifr_error *error) {
    regex_t regex;
    size_t found = 0;
    char why[128];
    int code = regcomp(&regex, expression, REG_EXTENDED | REG_ICASE | REG_NOSUB);
    if (code != 0) {
        regerror(code, &regex, why, sizeof why);
        return base_fail(error, SIFR_USAGE,
                         "pipeline.partition: type:%s is no regular expression: %s", expression,
                         why);
    }
    for (size_t u = 0; u < model->unit_count; u++) {
        weights[u] = regexec(&regex, model->units[u].name, 0, NULL, 0) == 0;
        found += weights[u] > 0;
    }
    regfree(&regex);
    if (found) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "pipeline.partition: type:%s finds none of the %zu units, whose names go from "
                     "%s over %s to %s",
                     expression, model->unit_count, model->units[0].name,
                     model->units[model->unit_count / 2].name,
                     model->units[model->unit_count - 1].name);
}

static bool is_best(const sifr_pipeline *asked) {
    return !asked->partition || strcmp(asked->partition, "best") == 0;
}

static sifr_status weigh(const sifr_model *model, device *dev, const plan_settings *settings,
                         unit_weights *of, sifr_error *error) {
    const char *partition = settings->step.pipeline.partition;
    double *weights = of->all;
    if (is_best(&settings->step.pipeline)) return weigh_time(model, dev, settings, of, error);
    if (strncmp(partition, "type:", 5) == 0)
        return weigh_type(model, partition + 5, weights, error);
    if (strcmp(partition, "parameters") == 0) {
        weigh_parameters(model, weights);
        return SIFR_OK;
    }
    if (strcmp(partition, "uniform") == 0) {
        for (size_t u = 0; u < model->unit_count; u++) weights[u] = 1;
        return SIFR_OK;
    }
    return base_fail(error, SIFR_USAGE,
                     "pipeline.partition: \"%s\" is none of best, uniform, parameters and "
                     "type:REGEX",
                     partition);
}

static sifr_status cut(const sifr_model *model, device *dev, plan_settings *settings,
                       sifr_error *error) {
    size_t units = model->unit_count;
    plan_pipeline *p = &settings->pipeline;
    unit_weights weights;
    BASE_TRY(base_alloc(3 * units, sizeof *weights.all, &weights.all, error));
    weights.forward = weights.all + units;
    weights.backward = weights.forward + units;
    sifr_status status = weigh(model, dev, settings, &weights, error);
    if (status == SIFR_OK) status = plan_cut_units(weights.all, (int32_t)units, p, error);
    bool evenly = p->order == PLAN_WALK_INTERLEAVED && is_best(&settings->step.pipeline);
    if (status == SIFR_OK && evenly)
        status = plan_cut_evenly(weights.forward, weights.backward, (int32_t)units, p, error);
    free(weights.all);
    return status;
}

static sifr_status check_walk(const plan_settings *settings, sifr_error *error) {
    const plan_pipeline *p = &settings->pipeline;
    plan_walk_shape shape = {.order = p->order,
                             .stages = p->stages,
                             .chunks = p->chunks,
                             .micro_batches = settings->step.gradient_accumulation_steps};
    return plan_walk_check(&shape, error);
}

sifr_status lower_cut_model(const sifr_model *model, device *dev, plan_settings *settings,
                            sifr_error *error) {
    plan_pipeline *p = &settings->pipeline;
    const sifr_pipeline *asked = &settings->step.pipeline;
    int32_t stages = settings->mesh.ranks[PLAN_AXIS_STAGE];
    if (p->stages <= 1 && stages <= 1) return SIFR_OK;
    BASE_TRY(check_beside(settings, error));
    bool is_cut = p->stages > 0, interleaved = asked->schedule == SIFR_SCHEDULE_INTERLEAVED;
    if (!is_cut)
        *p = (plan_pipeline){.stage = settings->mesh.place[PLAN_AXIS_STAGE],
                             .stages = stages,
                             .chunks = interleaved ? asked->chunks : 1,
                             .order = order_of(asked->schedule)};
    /* Also of a cut that is known: a search keeps that and tries other numbers of micro batches. */
    if (settings->mode == PLAN_TRAIN) BASE_TRY(check_walk(settings, error));
    if (is_cut) return SIFR_OK;
    return cut(model, dev, settings, error);
}

sifr_status plan_lower_stages(const sifr_model *model, device *dev, const plan_settings *settings,
                              plan_schedule **out, sifr_error *error) {
    int32_t stages = settings->mesh.ranks[PLAN_AXIS_STAGE];
    plan_settings here = *settings;
    for (int32_t s = 0; s < stages; s++) out[s] = NULL;
    for (int32_t s = 0; s < stages; s++) {
        here.mesh.place[PLAN_AXIS_STAGE] = here.pipeline.stage = s;
        BASE_TRY(plan_lower(model, dev, &here, &out[s], error));
        here.pipeline = out[s]->settings.pipeline; /* cut once */
    }
    return SIFR_OK;
}
