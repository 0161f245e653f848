#include "engine/check/step_order.h"

#include <math.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/parallel.h"
#include "base/text.h"
#include "engine/engine_private.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/search/search.h"

/* `capacity` of 0: not known. */
static sifr_status check_capacity(int64_t bytes, int64_t capacity, const char *of,
                                  sifr_error *error) {
    char need[32], have[32];
    if (capacity == 0 || bytes <= capacity) return SIFR_OK;
    return base_fail(error, SIFR_NO_MEMORY, "memory: a rank takes %s%s, and may take %s",
                     base_format_bytes((uint64_t)bytes, need), of,
                     base_format_bytes((uint64_t)capacity, have));
}

sifr_status engine_fits(const plan_schedule *s, const plan_machine *machine, sifr_error *error) {
    int32_t ranks = plan_mesh_ranks(&s->settings.mesh, PLAN_WORLD), most = machine->ranks_per_host;
    bool separate = device_is_separate(s->dev);
    if (separate)
        BASE_TRY(
            check_capacity(plan_host_bytes(s), machine->host_room_bytes, " of the host's", error));
    else if (machine->room_bytes == 0)
        return engine_check_memory(s, most > 0 && most < ranks ? most : ranks, error);
    const char *of = separate ? " of the device's" : "";
    return check_capacity(s->total_bytes, machine->room_bytes, of, error);
}

/* One of the two orders, which are planned in parallel. */
typedef struct order_trial {
    const sifr_model *model;
    device *dev;
    plan_settings settings;
    const plan_machine *machine;
    plan_schedule *schedule; /* made of it */
    bool fits;
    double seconds;
    sifr_status status;
    sifr_error error;
} order_trial;

static sifr_status price(order_trial *t) {
    plan_prediction prediction;
    if (!t->schedule) BASE_TRY(plan_lower(t->model, t->dev, &t->settings, &t->schedule, &t->error));
    t->fits = engine_fits(t->schedule, t->machine, NULL) == SIFR_OK;
    BASE_TRY(plan_predict(t->schedule, t->machine, &prediction, NULL, &t->error));
    t->seconds = prediction.step_seconds;
    return SIFR_OK;
}

static void price_order(void *argument, size_t order) {
    order_trial *t = (order_trial *)argument + order;
    t->status = price(t);
}

static sifr_status compare_orders(const order_trial *trials, engine_order_choice *choice,
                                  sifr_error *error) {
    for (int o = 0; o < 2; o++) {
        const order_trial *t = &trials[o];
        /* An order that cannot be planned within the activation limit is not chosen. */
        if (t->status != SIFR_OK && t->status != SIFR_USAGE)
            return base_fail(error, t->status, "%s", t->error.message);
        choice->fits[o] = t->status == SIFR_OK && t->fits;
        choice->seconds[o] = t->status == SIFR_OK ? t->seconds : HUGE_VAL;
    }
    if (trials[0].status != SIFR_OK && trials[1].status != SIFR_OK)
        return base_fail(error, trials[0].status, "%s", trials[0].error.message);
    choice->order = plan_better_order(choice->fits, choice->seconds);
    return SIFR_OK;
}

sifr_status engine_choose_order(const sifr_model *model, device *dev, const plan_settings *settings,
                                const plan_machine *machine, engine_order_choice *choice,
                                plan_schedule **chosen, sifr_error *error) {
    order_trial trials[2];
    *choice = (engine_order_choice){.order = SIFR_STEP_BATCH, .fits = {true, true}};
    if (settings->step.gradient_accumulation_steps == 1)
        return SIFR_OK; /* they are the same list */
    for (int o = 0; o < 2; o++) {
        trials[o] =
            (order_trial){.model = model, .dev = dev, .settings = *settings, .machine = machine};
        trials[o].settings.step.step_order = (sifr_step_order)o;
    }
    if (chosen) {
        base_assert(settings->step.step_order != SIFR_STEP_AUTO);
        trials[settings->step.step_order].schedule = *chosen;
        *chosen = NULL;
    }
    base_parallel(2, 2, price_order, trials);
    sifr_status status = compare_orders(trials, choice, error);
    for (int o = 0; o < 2; o++) {
        bool wanted = chosen && status == SIFR_OK && o == (int)choice->order;
        if (wanted)
            *chosen = trials[o].schedule;
        else
            plan_free(trials[o].schedule);
    }
    return status;
}

static sifr_status try_fit(const sifr_model *model, device *dev, const plan_settings *settings,
                           const plan_machine *machine, bool *fits, sifr_error *error) {
    plan_schedule *s;
    sifr_error why = {0};
    *fits = false;
    sifr_status status = plan_lower(model, dev, settings, &s, &why);
    if (status == SIFR_USAGE) return SIFR_OK;
    if (status != SIFR_OK) return base_fail(error, status, "%s", why.message);
    *fits = engine_fits(s, machine, NULL) == SIFR_OK;
    plan_free(s);
    return SIFR_OK;
}

sifr_status engine_order_fits(const sifr_model *model, device *dev, const plan_settings *settings,
                              const plan_machine *machine, sifr_step_order order, comm_group *group,
                              bool *fits, sifr_error *error) {
    plan_settings one = *settings;
    one.step.step_order = order;
    sifr_status status = try_fit(model, dev, &one, machine, fits, error);
    BASE_TRY(comm_agree_status(group, status, error));
    int64_t misfits = !*fits;
    BASE_TRY(comm_sum(group, &misfits, 1, error));
    *fits = misfits == 0;
    return SIFR_OK;
}

sifr_status engine_agree_order(comm_group *group, engine_order_choice *choice, sifr_error *error) {
    int64_t misfits[2] = {!choice->fits[SIFR_STEP_BATCH], !choice->fits[SIFR_STEP_UNIT]};
    BASE_TRY(comm_sum(group, misfits, 2, error));
    for (int o = 0; o < 2; o++) choice->fits[o] = misfits[o] == 0;
    BASE_TRY(comm_broadcast(group, 0, choice->seconds, sizeof choice->seconds, error));
    choice->order = plan_better_order(choice->fits, choice->seconds);
    return SIFR_OK;
}

const char *engine_order_name(sifr_step_order order) {
    base_assert((int)order >= 0 && order <= SIFR_STEP_AUTO);
    static const char *const names[] = {
        [SIFR_STEP_BATCH] = "batch", [SIFR_STEP_UNIT] = "unit", [SIFR_STEP_AUTO] = "auto"};
    return names[order];
}

const char *engine_order_text(const engine_order_choice *choice, char *out, size_t size) {
    base_assert(choice->order != SIFR_STEP_AUTO);
    sifr_step_order order = choice->order,
                    other = order == SIFR_STEP_UNIT ? SIFR_STEP_BATCH : SIFR_STEP_UNIT;
    const char *name = engine_order_name(order);
    if (choice->seconds[order] == 0)
        snprintf(out, size, "%s: with one micro batch both are the same", name);
    else if (!choice->fits[order])
        snprintf(out, size, "%s: neither fits in memory", name);
    else if (!choice->fits[other])
        snprintf(out, size, "%s: only that fits in memory", name);
    else
        snprintf(out, size, "%s: predicted %.3g s a step, %s %.3g s, on a usual machine", name,
                 choice->seconds[order], engine_order_name(other), choice->seconds[other]);
    return out;
}
