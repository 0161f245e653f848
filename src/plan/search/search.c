#include "plan/search/search.h"

#include <math.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/heap.h"
#include "base/parallel.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/search/memo.h"
#include "plan/verify/verify.h"

/* Relative gain for which step_order "unit" is chosen. */
static const double order_gain = 0.01;

sifr_step_order plan_better_order(const bool fits[2], const double seconds[2]) {
    bool quicker = seconds[SIFR_STEP_UNIT] < (1 - order_gain) * seconds[SIFR_STEP_BATCH];
    bool unit = fits[SIFR_STEP_UNIT] && (quicker || !fits[SIFR_STEP_BATCH]);
    return unit ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
}

static void take_size(const plan_search *search, const plan_schedule *s, plan_outcome *out) {
    *out = (plan_outcome){.settings = s->settings,
                          .possible = true,
                          .total_bytes = s->total_bytes,
                          .host_bytes = plan_host_bytes(s),
                          .nvme_bytes = s->nvme_bytes};
    bool on_disk = search->disk_bytes == 0 || s->nvme_bytes <= search->disk_bytes;
    bool on_host = search->host_room_bytes == 0 || out->host_bytes <= search->host_room_bytes;
    bool saved = plan_fits_output(&search->output, s->model, &s->settings, s->nvme_bytes);
    out->growing_bytes = s->peak_bytes[PLAN_ACTIVATIONS] + s->peak_bytes[PLAN_INPUTS];
    out->fits = s->total_bytes <= search->room_bytes && on_host && on_disk && saved;
    for (int c = 0; c < PLAN_CLASSES; c++) out->largest_bytes[c] = s->largest_bytes[c];
}

static void take_stage(const plan_schedule *s, const plan_prediction *time, int32_t stage,
                       plan_outcome *out) {
    out->stage_bytes[2] = s->total_bytes;
    if (stage == 0) out->stage_bytes[0] = s->total_bytes;
    if (s->total_bytes > out->stage_bytes[1]) {
        out->stage_bytes[1] = s->total_bytes;
        out->fullest = stage;
    }
    out->bubble = fmax(out->bubble, time->stages);
    out->predicted.step_seconds = fmax(out->predicted.step_seconds, time->step_seconds);
}

int64_t plan_needed_bytes(const plan_outcome *o) {
    return base_max_i64(o->total_bytes, o->stage_bytes[1]);
}

/* A run walks through the lists of all stages together before it starts (plan_check_stages), and so
 * does its plan. A stage's time is that of all stages together, and a step fits if each of them
 * does. */
static sifr_status predict_stages(const plan_search *search, const plan_schedule *s,
                                  plan_outcome *out, sifr_error *error) {
    size_t count = (size_t)s->settings.pipeline.stages;
    plan_prediction *of = NULL;
    plan_schedule **plans;
    BASE_TRY(base_alloc(count, sizeof *plans, &plans, error));
    sifr_status status = base_alloc(count, sizeof *of, &of, error);
    if (status == SIFR_OK)
        status = plan_lower_stages(search->model, search->dev, &s->settings, plans, error);
    if (status == SIFR_OK)
        status = plan_verify_stages((const plan_schedule *const *)plans, count, error);
    if (status == SIFR_OK)
        status = plan_predict_stages((const plan_schedule *const *)plans, count, search->machine,
                                     of, error);
    if (status == SIFR_OK) {
        out->predicted = of[s->settings.pipeline.stage];
        for (size_t i = 0; i < count; i++) {
            plan_outcome stage;
            take_size(search, plans[i], &stage);
            take_stage(plans[i], &of[i], (int32_t)i, out);
            out->fits &= stage.fits;
        }
    }
    for (size_t i = 0; i < count; i++) plan_free(plans[i]);
    free(plans);
    free(of);
    return status;
}

sifr_status plan_assess(const plan_search *search, const plan_schedule *s, plan_outcome *out,
                        sifr_error *error) {
    plan_prediction by_order;
    take_size(search, s, out);
    plan_wire(s, &out->gathered, &out->reduced);
    plan_calls(s, &out->gathers, &out->reductions);
    if (plan_parts(&s->settings.pipeline) > 1) return predict_stages(search, s, out, error);
    BASE_TRY(plan_predict(s, search->machine, &out->predicted, NULL, error));
    out->order_seconds = out->predicted.step_seconds;
    if (!search->order_machine || s->settings.step.gradient_accumulation_steps == 1) return SIFR_OK;
    BASE_TRY(plan_predict(s, search->order_machine, &by_order, NULL, error));
    out->order_seconds = by_order.step_seconds;
    return SIFR_OK;
}

int64_t plan_spare(int64_t room_bytes) {
    enum { PARTS = 16 };
    return room_bytes == INT64_MAX ? 0 : room_bytes / PARTS;
}

void plan_limit(const plan_search *search, plan_settings *settings) {
    if (settings->step.recompute != SIFR_RECOMPUTE_AUTO) return;
    settings->room_bytes =
        settings->step.activation_memory > 0 ? 0 : search->room_bytes - search->spare_bytes;
}

bool plan_search_ends(plan_search *search) {
    bool ends = search->most_work > 0 &&
                search->lowered >= search->most_work / (int64_t)search->model->unit_count;
    search->ended |= ends;
    return ends;
}

/* Lowers the settings; *s is NULL if such a step cannot be planned. */
static sifr_status lower(plan_search *search, const plan_settings *settings, plan_schedule **s,
                         sifr_error *error) {
    sifr_error why = {0};
    *s = NULL;
    if (plan_search_ends(search)) return SIFR_OK;
    search->lowered += settings->step.gradient_accumulation_steps;
    sifr_status status = plan_lower(search->model, search->dev, settings, s, &why);
    if (status == SIFR_OK || status == SIFR_USAGE) return SIFR_OK;
    return base_fail(error, status, "%s", why.message);
}

/* Full recomputation needs no more memory than recompute "auto", and is planned quickly. If it does
 * not fit, or if only the size is asked, it is the answer. */
static sifr_status try_least(plan_search *search, const plan_settings *settings, plan_outcome *out,
                             bool *enough, sifr_error *error) {
    plan_settings least = *settings;
    plan_schedule *s;
    least.step.recompute = SIFR_RECOMPUTE_UNIT;
    BASE_TRY(lower(search, &least, &s, error));
    *enough = true;
    if (!s) return SIFR_OK;
    take_size(search, s, out);
    plan_free(s);
    if (settings->step.activation_memory == 0) return SIFR_OK;
    out->fits &= out->largest_bytes[PLAN_ACTIVATIONS] <= settings->step.activation_memory;
    *enough = !out->fits;
    return SIFR_OK;
}

/* Which steps are priced (time and traffic). Questions of size need memory alone. */
typedef enum pricing { PRICE_NONE, PRICE_FITTING, PRICE_ALL } pricing;

static sifr_status try_order(plan_search *search, const plan_settings *settings, pricing priced,
                             plan_outcome *out, sifr_error *error) {
    plan_schedule *s;
    plan_settings one = *settings;
    sifr_error why = {0};
    bool enough = false;
    search->tried++;
    plan_limit(search, &one);
    if (plan_memo_find(search->memo, &one, priced != PRICE_NONE, out)) return SIFR_OK;
    *out = (plan_outcome){.settings = one, .total_bytes = INT64_MAX};
    if (!priced && one.step.recompute == SIFR_RECOMPUTE_AUTO)
        BASE_TRY(try_least(search, &one, out, &enough, error));
    if (enough) return SIFR_OK;
    BASE_TRY(lower(search, &one, &s, error));
    if (!s) return SIFR_OK;
    sifr_status status = SIFR_OK;
    take_size(search, s, out);
    bool assessed = priced == PRICE_ALL || (priced == PRICE_FITTING && out->fits);
    if (assessed && plan_parts(&s->settings.pipeline) > 1) /* the lists of all stages */
        search->lowered += settings->step.gradient_accumulation_steps;
    if (assessed) status = plan_assess(search, s, out, &why);
    if (status == SIFR_USAGE) { /* of another stage */
        *out = (plan_outcome){.settings = one, .total_bytes = INT64_MAX};
        status = SIFR_OK;
    }
    if (status != SIFR_OK) base_set_error(error, status, "%s", why.message);
    out->settings = one; /* as given: plan_lower may set `verify` in its own copy */
    if (status == SIFR_OK) plan_memo_keep(search->memo, out, assessed);
    plan_free(s);
    return status;
}

static sifr_status try_any(plan_search *search, const plan_settings *settings, pricing priced,
                           plan_outcome *out, sifr_error *error) {
    plan_outcome of[2];
    bool fits[2];
    double seconds[2];
    plan_settings one = *settings;
    if (search->any_order) one.step.step_order = SIFR_STEP_BATCH;
    if (!search->any_order || settings->step.gradient_accumulation_steps == 1)
        return try_order(search, &one, priced, out, error);
    for (int o = 0; o < 2; o++) {
        one.step.step_order = (sifr_step_order)o;
        BASE_TRY(try_order(search, &one, priced, &of[o], error));
        fits[o] = of[o].fits;
        seconds[o] = of[o].order_seconds;
        if (!priced && fits[o]) break;
    }
    *out = of[priced ? plan_better_order(fits, seconds) : fits[0] ? 0 : 1];
    bool least = priced != PRICE_ALL && !out->fits;
    for (int o = 0; o < 2 && least; o++)
        if (of[o].total_bytes < out->total_bytes) *out = of[o];
    return SIFR_OK;
}

sifr_status plan_try(plan_search *search, const plan_settings *settings, plan_outcome *out,
                     sifr_error *error) {
    return try_any(search, settings, PRICE_ALL, out, error);
}

sifr_status plan_try_fitting(plan_search *search, const plan_settings *settings, plan_outcome *out,
                             sifr_error *error) {
    return try_any(search, settings, PRICE_FITTING, out, error);
}

sifr_status plan_try_size(plan_search *search, const plan_settings *settings, plan_outcome *out,
                          sifr_error *error) {
    int32_t tried = search->tried;
    sifr_status status = try_any(search, settings, PRICE_NONE, out, error);
    search->tried = tried;
    return status;
}

/* Applies if "none" does not fit and "unit" does. */
sifr_status plan_between(plan_search *search, const plan_settings *from, plan_outcome *out,
                         bool *is_between, sifr_error *error) {
    plan_search fixed = *search;
    plan_settings settings = *from;
    sifr_status status = SIFR_OK;
    bool fits[2] = {true, false};
    fixed.any_order = false;
    for (int i = 0; i < 2 && from->step.recompute != SIFR_RECOMPUTE_AUTO && status == SIFR_OK;
         i++) {
        settings.step.recompute = (sifr_recompute)i;
        status = plan_try(&fixed, &settings, out, error);
        fits[i] = status == SIFR_OK && out->fits;
    }
    *is_between = !fits[SIFR_RECOMPUTE_NONE] && fits[SIFR_RECOMPUTE_UNIT];
    settings.step.recompute = SIFR_RECOMPUTE_AUTO;
    settings.step.activation_memory = 0;
    if (*is_between) status = plan_try(&fixed, &settings, out, error);
    search->tried = fixed.tried;
    search->lowered = fixed.lowered;
    return status;
}

static void go_to_next_stage(plan_settings *settings) {
    int32_t *stage = &settings->mesh.place[PLAN_AXIS_STAGE];
    *stage = (*stage + 1) % plan_mesh_ranks(&settings->mesh, PLAN_STAGES);
    if (settings->pipeline.stages > 1) settings->pipeline.stage = *stage;
}

sifr_status plan_try_all_sizes(plan_search *search, const plan_settings *settings,
                               plan_outcome *out, sifr_error *error) {
    int32_t stages = plan_mesh_ranks(&settings->mesh, PLAN_STAGES);
    plan_settings one = *settings;
    BASE_TRY(plan_try_size(search, &one, out, error));
    for (int32_t i = 1; i < stages && out->possible; i++) {
        plan_outcome stage;
        go_to_next_stage(&one);
        BASE_TRY(plan_try_size(search, &one, &stage, error));
        bool fits = out->fits && stage.fits;
        if (stage.total_bytes > out->total_bytes) *out = stage;
        out->fits = fits;
    }
    out->settings = *settings;
    return SIFR_OK;
}

void plan_set_sequences(plan_settings *settings, int64_t value) {
    settings->step.micro_batch_size = value;
}

/* Context ranks divide sequences into their runs, so between lengths that they divide the next one
 * is meant. */
void plan_set_length(plan_settings *settings, int64_t value) {
    int64_t runs = plan_runs_of_tokens(settings).count;
    settings->step.seq_length =
        base_ceil_to(value, runs * plan_mesh_ranks(&settings->mesh, PLAN_CONTEXTS));
}

/* State of a search for the largest value: all values up to `fits` fit, from `too_large` on none
 * does. */
typedef struct plan_bracket {
    int64_t fits, too_large;
    int64_t last, bytes; /* the last value that could be planned (0: none) and its bytes */
    double slope;        /* bytes per unit of the value near `last` */
    bool is_below, is_above;
    bool is_impossible; /* some value was too large to be planned at all */
} plan_bracket;

/* The slope is growing_bytes / value, until two close values give a better one. A slope far from
 * that estimate is ignored: it comes from a step in the curve. */
static void note_slope(plan_bracket *b, int64_t value, const plan_outcome *outcome) {
    double grows = (double)outcome->growing_bytes / (double)value, run = (double)(value - b->last);
    double slope = ((double)outcome->total_bytes - (double)b->bytes) / run;
    bool near = fabs(run) <= (double)value / 64 && slope > grows / 2 && slope < grows * 2;
    b->slope = near ? slope : grows;
}

static void note_point(plan_bracket *b, int64_t value, const plan_outcome *outcome) {
    *(outcome->fits ? &b->fits : &b->too_large) = value;
    b->is_impossible |= !outcome->possible;
    if (!outcome->possible) return;
    note_slope(b, value, outcome);
    b->last = value;
    b->bytes = outcome->total_bytes;
    *(outcome->fits ? &b->is_below : &b->is_above) = true;
}

/* Predicted distance from the last value to the one that needs `capacity` bytes; negative if the
 * last value needs more. */
static int64_t way_to(const plan_bracket *b, int64_t capacity) {
    const double most = 0x1p61;
    if (b->last == 0) return 0;
    double way = floor(((double)capacity - (double)b->bytes) / b->slope);
    return (int64_t)(way < -most ? -most : way < most ? way : most);
}

/* Memory is a line with steps in it, so the point where the line meets `capacity` is mostly near
 * the answer. If it is not (the limit may be the disk's, too): with only fitting values so far, the
 * distance doubles, later the value; below a value that does not fit, a guess outside of the
 * interval is its middle, and so is every second one in the end. So each two tries halve the
 * interval, however memory grows. */
enum { LINE_TRIES = 6 };

static int64_t next_value(const plan_bracket *b, int64_t capacity, int step) {
    int64_t half = b->fits + (b->too_large - b->fits) / 2, way = way_to(b, capacity), guess = half;
    int64_t there = b->last + way;
    bool halves = step >= LINE_TRIES && step % 2 == 0;
    if (b->is_below && !b->is_above) {
        int64_t least = step < LINE_TRIES ? b->fits >> 6 : b->fits;
        guess = b->fits + base_max_i64(step < 3 ? way : 2 * way, least);
        if (b->is_impossible && (guess >= b->too_large || halves))
            guess = half; /* not memory, but a limit */
    } else if (b->is_above) {
        bool inside = there >= b->fits && there < b->too_large;
        if (inside && !halves) guess = there;
        if (!b->is_below && step == 0) guess = there; /* then even the least value seldom fits */
    }
    return base_min_i64(base_max_i64(guess, b->fits + 1), b->too_large - 1);
}

/* The largest value from `first` to below `end`; `near` is tried first. */
static sifr_status find_largest(plan_search *search, const plan_settings *settings,
                                plan_setter *set, int64_t near, int64_t first, int64_t end,
                                int64_t *out, sifr_error *error) {
    plan_bracket b = {.fits = first - 1, .too_large = end};
    int64_t value = base_min_i64(base_max_i64(near, first), end - 1);
    for (int step = 0; b.too_large - b.fits > 1; step++) {
        plan_settings one = *settings;
        plan_outcome outcome;
        set(&one, value);
        BASE_TRY(try_any(search, &one, PRICE_NONE, &outcome, error));
        note_point(&b, value, &outcome);
        value = next_value(&b, search->room_bytes, step);
    }
    *out = b.fits;
    return SIFR_OK;
}

/* Whether a step may fit with order "unit", which keeps activations of all micro batches. A few
 * micro batches are enough to tell, and are planned quickly. */
static sifr_status may_fit_by_unit(plan_search *search, const plan_settings *settings,
                                   plan_setter *set, int64_t value, bool *out, sifr_error *error) {
    plan_settings few = *settings;
    plan_outcome outcome;
    if (few.step.gradient_accumulation_steps > PLAN_FEW)
        few.step.gradient_accumulation_steps = PLAN_FEW;
    set(&few, value);
    BASE_TRY(try_any(search, &few, PRICE_NONE, &outcome, error));
    *out = outcome.fits;
    return SIFR_OK;
}

/* Of the stage of settings.mesh. */
static sifr_status largest_of_stage(plan_search *search, const plan_settings *settings,
                                    plan_setter *set, int64_t near, int64_t first, int64_t last,
                                    int64_t *out, sifr_error *error) {
    plan_settings one = *settings;
    plan_search fixed = *search;
    int64_t end = last + 1;
    bool orders = search->any_order && settings->step.gradient_accumulation_steps > 1;
    fixed.any_order = false;
    if (orders)
        one.step.step_order = SIFR_STEP_BATCH; /* needs less memory; "unit" may still allow more */
    sifr_status status = find_largest(&fixed, &one, set, near, first, end, out, error);
    one.step.step_order = SIFR_STEP_UNIT;
    orders &= status == SIFR_OK && *out < last;
    if (orders) status = may_fit_by_unit(&fixed, &one, set, *out + 1, &orders, error);
    if (status == SIFR_OK && orders)
        status = find_largest(&fixed, &one, set, *out + 1, *out + 1, end, out, error);
    search->tried = fixed.tried;
    search->lowered = fixed.lowered;
    return status;
}

/* From the first stage on, whichever asks: what several stages fit need not be one value alone, as
 * memory may fall a little where the value grows (scratch of products of other shapes). The others
 * are asked about a stage's largest value alone, until one is that of all. The cut of the units may
 * depend on the value. */
sifr_status plan_largest(plan_search *search, const plan_settings *settings, plan_setter *set,
                         int64_t near, int64_t first, int64_t last, int64_t *out,
                         sifr_error *error) {
    int32_t stages = plan_mesh_ranks(&settings->mesh, PLAN_STAGES), fitting = 1;
    plan_settings one = *settings;
    if (stages > 1) one.pipeline = (plan_pipeline){0};
    one.mesh.place[PLAN_AXIS_STAGE] = 0;
    BASE_TRY(largest_of_stage(search, &one, set, near, first, last, out, error));
    while (fitting < stages && *out >= first) {
        plan_settings there;
        plan_outcome outcome;
        go_to_next_stage(&one);
        there = one;
        set(&there, *out);
        BASE_TRY(plan_try_size(search, &there, &outcome, error));
        fitting++;
        if (outcome.fits) continue;
        BASE_TRY(largest_of_stage(search, &one, set, *out - 1, first, *out - 1, out, error));
        fitting = 1;
    }
    return SIFR_OK;
}

static void try_one(void *argument, size_t index) {
    plan_trial *trial = (plan_trial *)argument + index;
    plan_search *search = &trial->search;
    if (trial->fixed_order) search->any_order = false;
    switch (trial->question) {
    case PLAN_ASK_STEP:
        trial->status = plan_try(search, &trial->settings, &trial->outcome, &trial->error);
        break;
    case PLAN_ASK_LARGEST:
        trial->status = plan_largest(search, &trial->settings, trial->set, trial->near, 1,
                                     trial->last, &trial->largest, &trial->error);
        break;
    case PLAN_ASK_BETWEEN:
        trial->status = plan_between(search, &trial->settings, &trial->outcome, &trial->is_between,
                                     &trial->error);
        break;
    }
}

sifr_status plan_try_all(plan_search *search, plan_trial *trials, size_t count, sifr_error *error) {
    for (size_t i = 0; i < count; i++) {
        trials[i].search = *search;
        trials[i].search.tried = 0;
        trials[i].search.lowered = 0;
        trials[i].search.most_work = 0; /* else answers depended on the number of threads */
    }
    base_parallel(search->threads, count, try_one, trials);
    for (size_t i = 0; i < count; i++) {
        search->tried += trials[i].search.tried;
        search->lowered += trials[i].search.lowered;
    }
    for (size_t i = 0; i < count; i++) {
        if (trials[i].status != SIFR_OK)
            return base_fail(error, trials[i].status, "%s", trials[i].error.message);
    }
    return SIFR_OK;
}
