#include "train/prepare/step_choice.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/heap.h"
#include "engine/check/device_choice.h"
#include "engine/check/step_order.h"
#include "plan/pass/passes.h"
#include "plan/search/search.h"
#include "train/prepare/pinned.h"
#include "train/prepare/run_settings.h"

static void take_stored(train_state *t) {
    sifr_error wrong;
    if (plan_machine_load_stored(&t->machine, &wrong) != SIFR_OK)
        base_log(t->host->log, SIFR_LOG_WARNING, "%s; its figures for communication are not used",
                 wrong.message);
}

sifr_status train_measure_machine(train_state *t, device *dev, void *memory, int64_t bytes,
                                  sifr_error *error) {
    t->machine = (plan_machine){.ranks_per_host = comm_local_size(t->group)};
    BASE_TRY(plan_machine_measure(dev, memory, bytes, &t->machine, error));
    take_stored(t);
    return SIFR_OK;
}

/* The order may decide the bits, so no measurement decides the order. */
static sifr_status open_machine(train_state *t, const sifr_settings *options, device **dev,
                                sifr_error *error) {
    BASE_TRY(engine_open_device(options, t->group, dev, error));
    device_only_plan(*dev);
    t->machine = (plan_machine){.ranks_per_host = comm_local_size(t->group)};
    plan_machine_typical(*dev, &t->machine);
    take_stored(t);
    return SIFR_OK;
}

/* The memory available to the rank that has least. */
static sifr_status least_memory(train_state *t, const device *dev, int64_t *out,
                                sifr_error *error) {
    int64_t mine = device_is_hidden(dev) ? device_capacity(dev)
                                         : (int64_t)engine_rank_capacity(comm_local_size(t->group));
    int64_t *all;
    mine = mine > 0 ? mine - plan_spare(mine) : INT64_MAX;
    sifr_status status = base_alloc((size_t)comm_size(t->group), sizeof *all, &all, error);
    BASE_TRY(train_agree(t, status, error));
    status = comm_all_gather_control(t->group, &mine, sizeof mine, all, error);
    *out = mine;
    for (int32_t r = 0; r < comm_size(t->group) && status == SIFR_OK; r++)
        *out = base_min_i64(*out, all[r]);
    free(all);
    return status;
}

/* The order that keeps the bits of the checkpoint's run, if it fits. */
static sifr_status keep_order(train_state *t, device *dev, const train_pinned *pinned,
                              plan_settings *settings, bool *kept, sifr_error *error) {
    sifr_step_order order;
    *kept = false;
    if (!train_pinned_order(pinned, settings, &order)) return SIFR_OK;
    bool same = pinned->has_order && order == pinned->order;
    const char *name = engine_order_name(order), *has = same ? "which" : "which has the bits that";
    BASE_TRY(engine_order_fits(t->folder.model, dev, settings, &t->machine, order, t->group, kept,
                               error));
    if (*kept) {
        settings->step.step_order = order;
        train_say(t->host,
                  same ? "step_order %s: as in checkpoint-%lld"
                       : "step_order %s: adds gradients as the run of checkpoint-%lld did",
                  name, (long long)pinned->step);
    } else {
        base_log(t->host->log, SIFR_LOG_WARNING,
                 "step_order %s, %s checkpoint-%lld has, does not fit in memory: another one is "
                 "chosen",
                 name, has, (long long)pinned->step);
    }
    return SIFR_OK;
}

static sifr_status choose_order(train_state *t, device *dev, const train_pinned *pinned,
                                plan_settings *settings, sifr_error *error) {
    engine_order_choice choice = {.order = SIFR_STEP_BATCH};
    char text[128];
    bool kept;
    BASE_TRY(keep_order(t, dev, pinned, settings, &kept, error));
    if (kept) return SIFR_OK;
    sifr_status status =
        engine_choose_order(t->folder.model, dev, settings, &t->machine, &choice, NULL, error);
    BASE_TRY(train_agree(t, status, error));
    BASE_TRY(engine_agree_order(t->group, &choice, error));
    train_say(t->host, "step_order %s", engine_order_text(&choice, text, sizeof text));
    settings->step.step_order = choice.order;
    return SIFR_OK;
}

/* The activation limit if only the machine's memory limits it. */
static sifr_status fill_memory(const train_state *t, device *dev, plan_settings *settings,
                               sifr_error *error) {
    plan_schedule *s;
    BASE_TRY(plan_lower(t->folder.model, dev, settings, &s, error));
    settings->step.activation_memory = s->largest_bytes[PLAN_ACTIVATIONS];
    plan_free(s);
    return SIFR_OK;
}

static sifr_status choose(train_state *t, device *dev, const train_pinned *pinned,
                          plan_settings *settings, bool orders, sifr_error *error) {
    bool keeps = settings->step.recompute == SIFR_RECOMPUTE_AUTO;
    if (keeps && settings->step.activation_memory == 0)
        BASE_TRY(least_memory(t, dev, &settings->room_bytes, error));
    if (orders) BASE_TRY(choose_order(t, dev, pinned, settings, error));
    if (!keeps || settings->step.activation_memory > 0) return SIFR_OK;
    return train_agree(t, fill_memory(t, dev, settings, error), error);
}

sifr_status train_choose_device(train_state *t, sifr_settings *options, sifr_error *error) {
    engine_device_choice *choice = &t->device;
    BASE_TRY(train_agree(t, engine_choose_device(options, t->group, choice, error), error));
    options->device = choice->kind;
    engine_say_choice(choice, t->host->log);
    if (choice->most_sharers > 1 && choice->kind == SIFR_DEVICE_CUDA)
        base_log(t->host->log, SIFR_LOG_WARNING,
                 "device cuda: %d ranks share a GPU: each takes some 500 MB of it for its context, "
                 "and they take turns, so that together they are no faster than one",
                 (int)choice->most_sharers);
    return SIFR_OK;
}

sifr_status train_choose_step(train_state *t, sifr_settings *options, sifr_error *error) {
    const sifr_config *c = t->config;
    plan_settings settings = train_plan_settings(options, t->group);
    bool orders = c->step.step_order == SIFR_STEP_AUTO && c->step.gradient_accumulation_steps > 1;
    device *dev = NULL;
    train_pinned pinned;
    BASE_TRY(train_pinned_read(t, &pinned, error));
    if (orders || settings.step.recompute == SIFR_RECOMPUTE_AUTO) {
        sifr_status status = train_agree(t, open_machine(t, options, &dev, error), error);
        if (status == SIFR_OK) status = choose(t, dev, &pinned, &settings, orders, error);
        device_close(dev);
        if (status != SIFR_OK) return status;
        options->step_order = settings.step.step_order;
        options->activation_memory = settings.step.activation_memory;
    }
    train_pinned_say_other(t->host, &pinned, &settings);
    train_pinned_say_unknown(t->host, &pinned, &settings);
    return SIFR_OK;
}
