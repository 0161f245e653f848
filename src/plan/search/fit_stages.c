/* Pipeline stages in plan_fit: the numbers of stages, micro batches and settings that may be faster
 * than what is known, and their plans. A plan has the lists of all stages, so candidates are sorted
 * by a lower bound of their time, and most are never planned. */
#include <stdlib.h>

#include "base/checked.h"
#include "base/heap.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/search/fit_private.h"

/* Seconds of one micro batch by unit, forward and backward, on one rank. */
typedef struct unit_times {
    int64_t sequences;
    sifr_recompute recompute;
    double *seconds; /* NULL: such a micro batch cannot be planned */
} unit_times;

typedef struct candidate {
    plan_settings settings;
    double least_seconds; /* the step takes no less */
    size_t number;        /* of candidates with the same bound the first ones come first */
} candidate;

typedef struct stage_search {
    plan_search *search;
    const plan_settings *from;
    unit_times *times;
    size_t time_count, time_capacity;
    candidate *candidates;
    size_t count, capacity;
    double quickest; /* of what fits so far; 0: nothing does */
} stage_search;

/* Whether a step of so many seconds may still be chosen. */
static bool is_wanted(const stage_search *run, double seconds) {
    return run->quickest == 0 || seconds <= (1 + fit_alike) * run->quickest;
}

static void note(stage_search *run, const plan_outcome *o) {
    double seconds = o->predicted.step_seconds;
    if (o->fits && (run->quickest == 0 || seconds < run->quickest)) run->quickest = seconds;
}

/* Lowers a step; *s is NULL if it cannot be planned. */
static sifr_status lower(stage_search *run, const plan_settings *settings, plan_schedule **s,
                         sifr_error *error) {
    sifr_error why = {0};
    *s = NULL;
    if (plan_search_ends(run->search)) return SIFR_OK;
    run->search->lowered += settings->step.gradient_accumulation_steps;
    sifr_status status = plan_lower(run->search->model, run->search->dev, settings, s, &why);
    if (status == SIFR_OK || status == SIFR_USAGE) return SIFR_OK;
    return base_fail(error, status, "%s", why.message);
}

static void add_times(const stage_search *run, const plan_schedule *s, double *seconds) {
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        bool pass = in->action == PLAN_FORWARD || in->action == PLAN_BACKWARD;
        if (in->call >= 0 && in->node >= 0 && pass)
            seconds[s->model->nodes[in->node].unit] += plan_price(s, i, run->search->machine);
    }
}

static sifr_status find_times(stage_search *run, int64_t sequences, sifr_recompute recompute,
                              const double **out, sifr_error *error) {
    for (size_t i = 0; i < run->time_count; i++) {
        *out = run->times[i].seconds;
        if (run->times[i].sequences == sequences && run->times[i].recompute == recompute)
            return SIFR_OK;
    }
    plan_settings one = *run->from;
    plan_schedule *s;
    unit_times found = {.sequences = sequences, .recompute = recompute};
    one.mesh = plan_mesh_flat(1, 0);
    one.pipeline = (plan_pipeline){0};
    one.step.pipeline.stages = 1;
    one.step.zero.stage = 0;
    one.step.zero.quantized_gradients = false; /* nothing is sent */
    one.step.mesh.sequence_parallel = false;   /* and there are no tensor ranks */
    one.step.offload.param.device = one.step.offload.optimizer.device = SIFR_TIER_NONE;
    one.step.offload.gradients = one.step.offload.activations = SIFR_TIER_NONE;
    one.step.tile_tokens = one.step.activation_memory = 0;
    one.step.recompute = recompute;
    one.step.step_order = SIFR_STEP_BATCH;
    one.step.micro_batch_size = sequences;
    one.step.gradient_accumulation_steps = 1;
    BASE_TRY(base_grow(&run->times, &run->time_capacity, run->time_count + 1, sizeof *run->times,
                       error));
    BASE_TRY(lower(run, &one, &s, error));
    sifr_status status = SIFR_OK;
    if (s)
        status = base_alloc(run->search->model->unit_count, sizeof *found.seconds, &found.seconds,
                            error);
    if (s && status == SIFR_OK) add_times(run, s, found.seconds);
    plan_free(s);
    run->times[run->time_count++] = found;
    *out = found.seconds;
    return status;
}

/* Which units each stage has; *possible is false if they cannot be cut so. */
static sifr_status find_cut(stage_search *run, const plan_settings *settings, plan_pipeline *out,
                            bool *possible, sifr_error *error) {
    plan_settings last = *settings; /* the stage whose list is short, with the head */
    plan_schedule *s;
    int32_t stages = plan_mesh_ranks(&settings->mesh, PLAN_STAGES);
    bool interleaved = settings->step.pipeline.schedule == SIFR_SCHEDULE_INTERLEAVED;
    last.mesh.place[PLAN_AXIS_STAGE] = stages - 1;
    last.step.gradient_accumulation_steps = interleaved ? stages : 1;
    last.step.recompute = SIFR_RECOMPUTE_NONE;
    last.step.activation_memory = last.step.tile_tokens = 0;
    BASE_TRY(lower(run, &last, &s, error));
    *possible = s != NULL;
    if (!s) return SIFR_OK;
    *out = s->settings.pipeline;
    out->stage = settings->mesh.place[PLAN_AXIS_STAGE];
    plan_free(s);
    return SIFR_OK;
}

/* A stage computes all its micro batches. Before its first one, all earlier stages have passed that
 * on, and behind its last one they pass the gradients back; with zb-h1 these weigh half at least.
 */
static double least_seconds(const plan_pipeline *p, const double *unit_seconds,
                            int32_t micro_batches) {
    double part[PLAN_MOST_PARTS] = {0}, before = 0, most = 0;
    for (int32_t i = 0; i < plan_parts(p); i++)
        for (int32_t u = p->first_unit[i]; u < p->first_unit[i + 1]; u++)
            part[i] += unit_seconds[u];
    for (int32_t s = 0; s < p->stages; s++) {
        double own = 0;
        for (int32_t i = s; i < plan_parts(p); i += p->stages) own += part[i];
        double seconds = micro_batches * own + before;
        if (seconds > most) most = seconds;
        before += p->order == PLAN_WALK_ZB_H1 ? part[s] / 2 : part[s];
    }
    return most;
}

static sifr_status add_candidate(stage_search *run, const plan_settings *settings, double least,
                                 sifr_error *error) {
    BASE_TRY(base_grow(&run->candidates, &run->capacity, run->count + 1, sizeof *run->candidates,
                       error));
    run->candidates[run->count] =
        (candidate){.settings = *settings, .least_seconds = least, .number = run->count};
    run->count++;
    return SIFR_OK;
}

/* The combinations of a number of stages of which one micro batch of the smallest size fits. */
typedef struct stage_settings {
    plan_settings *all;
    size_t count, capacity;
} stage_settings;

static sifr_status may_fit(stage_search *run, const plan_settings *settings,
                           const plan_pipeline *cut, bool *out, sifr_error *error) {
    plan_settings least = *settings;
    plan_outcome size;
    *out = fit_state_bytes(run->search, settings) <= run->search->room_bytes;
    if (!*out) return SIFR_OK;
    least.pipeline = *cut;
    least.step.gradient_accumulation_steps = cut->chunks > 1 ? cut->stages : 1;
    BASE_TRY(plan_try_size(run->search, &least, &size, error));
    *out = size.fits;
    return SIFR_OK;
}

static sifr_status find_settings(stage_search *run, const plan_settings *from,
                                 const fit_sizes *sizes, bool overlaps, stage_settings *out,
                                 sifr_error *error) {
    plan_settings one = *from;
    plan_pipeline cut;
    bool fits = false;
    int64_t first = fit_least_sequences(run->search, from);
    for (size_t i = 0; i < sizes->count && !fits; i++) {
        one.step.micro_batch_size = sizes->size[i];
        if (sizes->size[i] >= first) BASE_TRY(find_cut(run, &one, &cut, &fits, error));
    }
    for (int i = 0; i < 1 + overlaps && fits; i++) {
        if (overlaps) one.step.zero.overlap_comm = i == 0;
        fit_combination c = fit_begin_combinations(run->search, &one);
        do {
            plan_settings settings;
            bool wanted = fit_combine(run->search, &c, &one, &settings);
            if (wanted) BASE_TRY(may_fit(run, &settings, &cut, &wanted, error));
            if (!wanted) continue;
            BASE_TRY(base_grow(&out->all, &out->capacity, out->count + 1, sizeof *out->all, error));
            out->all[out->count++] = settings;
        } while (fit_next_combination(&c));
    }
    return SIFR_OK;
}

/* Candidates of one micro batch. */
static sifr_status add_size(stage_search *run, const stage_settings *of, const fit_sizes *sizes,
                            size_t index, sifr_error *error) {
    plan_settings one = of->all[0];
    plan_pipeline cut;
    const double *seconds;
    double least[2];
    bool possible;
    int32_t sharing = plan_mesh_ranks(&one.mesh, PLAN_TENSORS) *
                      plan_mesh_ranks(&one.mesh, PLAN_CONTEXTS); /* at best they divide all work */
    fit_set_size(sizes, &one, index);
    BASE_TRY(find_cut(run, &one, &cut, &possible, error));
    if (!possible) return SIFR_OK;
    for (int r = 0; r < 2; r++) {
        BASE_TRY(find_times(run, one.step.micro_batch_size, (sifr_recompute)r, &seconds, error));
        if (!seconds) return SIFR_OK;
        least[r] = least_seconds(&cut, seconds, one.step.gradient_accumulation_steps) / sharing;
    }
    for (size_t i = 0; i < of->count; i++) {
        one = of->all[i];
        fit_set_size(sizes, &one, index);
        double bound = least[one.step.recompute != SIFR_RECOMPUTE_NONE];
        if (is_wanted(run, bound)) BASE_TRY(add_candidate(run, &one, bound, error));
    }
    return SIFR_OK;
}

static sifr_status add_stages(stage_search *run, int32_t stages, bool overlaps, sifr_error *error) {
    plan_settings from = *run->from;
    sifr_error why = {0};
    stage_settings of = {0};
    fit_sizes sizes = {0};
    int32_t before = plan_mesh_ranks(&from.mesh, PLAN_STAGES);
    int32_t world = plan_mesh_ranks(&from.mesh, PLAN_WORLD);
    int64_t share = from.step.micro_batch_size * from.step.gradient_accumulation_steps;
    from.pipeline = (plan_pipeline){0};
    from.step.pipeline.stages = stages;
    from.step.step_order = SIFR_STEP_BATCH;
    sifr_status status =
        plan_mesh_of(&from.step, world, plan_mesh_place(&from.mesh, PLAN_WORLD), &from.mesh, &why);
    if (status != SIFR_OK) return SIFR_OK; /* shard_size does not divide the ranks of a stage */
    if (share * stages % before) return SIFR_OK; /* nor does the batch */
    plan_mesh_place_hosts(&from.mesh, run->search->machine->ranks_per_host);
    status = fit_find_sizes(run->search, share * stages / before, &sizes, error);
    if (status == SIFR_OK) status = find_settings(run, &from, &sizes, overlaps, &of, error);
    for (size_t i = 0; i < sizes.count && of.count > 0 && status == SIFR_OK; i++)
        status = add_size(run, &of, &sizes, i, error);
    free(of.all);
    free(sizes.size);
    return status;
}

/* A few micro batches tell whether a step is worth its whole lists. With one for each stage the
 * first stage keeps as many as it ever does; each further one takes as long as the one before. */
enum { FEW_ROUNDS = 2, ROUNDS = 4 };

static sifr_status is_promising(stage_search *run, const candidate *c, bool *out,
                                sifr_error *error) {
    int32_t stages = c->settings.step.pipeline.stages;
    int32_t micro_batches = c->settings.step.gradient_accumulation_steps;
    plan_trial *few;
    plan_settings one = c->settings;
    plan_outcome size;
    if (micro_batches > stages) one.step.gradient_accumulation_steps = stages;
    BASE_TRY(plan_try_size(run->search, &one, &size, error));
    *out = size.fits;
    if (!size.fits || micro_batches <= ROUNDS * stages) return SIFR_OK;
    BASE_TRY(base_alloc(2, sizeof *few, &few, error));
    for (int i = 0; i < 2; i++) {
        few[i] = (plan_trial){.question = PLAN_ASK_STEP, .settings = c->settings};
        few[i].settings.step.gradient_accumulation_steps = (FEW_ROUNDS + i) * stages;
    }
    sifr_status status = plan_try_all(run->search, few, 2, error);
    if (status == SIFR_OK) {
        double first = few[0].outcome.predicted.step_seconds;
        double round = few[1].outcome.predicted.step_seconds - first;
        double rounds = (double)micro_batches / stages - FEW_ROUNDS;
        *out = few[0].outcome.fits && is_wanted(run, first + rounds * round);
    }
    free(few);
    return status;
}

static int compare(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->least_seconds != y->least_seconds) return x->least_seconds < y->least_seconds ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

static sifr_status try_candidates(stage_search *run, fit_list *list, sifr_error *error) {
    if (run->count > 0) qsort(run->candidates, run->count, sizeof *run->candidates, compare);
    for (size_t i = 0; i < run->count; i++) {
        const candidate *c = &run->candidates[i];
        plan_outcome tried;
        bool wanted;
        if (!is_wanted(run, c->least_seconds)) break;
        BASE_TRY(is_promising(run, c, &wanted, error));
        if (!wanted) continue;
        BASE_TRY(plan_try_fitting(run->search, &c->settings, &tried, error));
        if (!tried.fits) continue;
        note(run, &tried);
        BASE_TRY(fit_add(list, &tried, error));
    }
    return SIFR_OK;
}

sifr_status fit_try_stages(plan_search *search, const plan_settings *from, bool overlaps,
                           fit_list *list, sifr_error *error) {
    stage_search run = {.search = search, .from = from};
    int32_t world = plan_mesh_ranks(&from->mesh, PLAN_WORLD);
    int32_t given = plan_mesh_ranks(&from->mesh, PLAN_STAGES);
    int64_t most = base_min_i64(world, (int64_t)search->model->unit_count);
    sifr_status status = SIFR_OK;
    for (size_t i = 0; i < list->count; i++) note(&run, &list->all[i]);
    for (int32_t stages = 2; stages <= most && status == SIFR_OK; stages++) {
        bool all = given == 1 || search->any_stages;
        bool wanted = all ? world % stages == 0 : stages == given;
        if (wanted) status = add_stages(&run, stages, overlaps, error);
    }
    if (status == SIFR_OK) status = try_candidates(&run, list, error);
    for (size_t i = 0; i < run.time_count; i++) free(run.times[i].seconds);
    free(run.times);
    free(run.candidates);
    return status;
}
