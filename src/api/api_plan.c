#include "sifr/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_context.h"
#include "api/plan/plan_make.h"
#include "base/heap.h"
#include "base/inside.h"
#include "plan/queries.h"

enum { MOST_RANKS = 1 << 20 };

struct sifr_plan {
    api_plan_report report;
    char *machine, *nvme; /* the options' */
    bool chosen;          /* sifr_plan_fit has found what fits */
};

static sifr_status check_ranks(const sifr_plan_options *o, sifr_error *error) {
    if (o->ranks < 1 || o->ranks > MOST_RANKS)
        return base_fail(error, SIFR_USAGE,
                         "sifr_plan_options.ranks: %lld; 1 to %d ranks can be planned",
                         (long long)o->ranks, (int)MOST_RANKS);
    if (o->rank < 0 || o->rank >= o->ranks)
        return base_fail(error, SIFR_USAGE,
                         "sifr_plan_options.rank: %lld; of %lld ranks it is 0 to %lld",
                         (long long)o->rank, (long long)o->ranks, (long long)o->ranks - 1);
    if (o->ranks_per_host < 0 || o->ranks_per_host > MOST_RANKS)
        return base_fail(error, SIFR_USAGE, "sifr_plan_options.ranks_per_host: %lld; give 0 to %d",
                         (long long)o->ranks_per_host, (int)MOST_RANKS);
    if (o->ranks_per_host && o->ranks_per_host < o->ranks && o->ranks % o->ranks_per_host != 0)
        return base_fail(
            error, SIFR_USAGE,
            "sifr_plan_options.ranks_per_host: %lld; hosts have as many ranks each, so "
            "give a number that divides %lld",
            (long long)o->ranks_per_host, (long long)o->ranks);
    if (o->device_memory < 0 || o->host_memory < 0)
        return base_fail(error, SIFR_USAGE, "sifr_plan_options.%s: %lld bytes; give 0 or more",
                         o->device_memory < 0 ? "device_memory" : "host_memory",
                         (long long)(o->device_memory < 0 ? o->device_memory : o->host_memory));
    return SIFR_OK;
}

static sifr_status keep_text(const char *text, char **out, sifr_error *error) {
    *out = text ? strdup(text) : NULL;
    return text && !*out ? base_fail_alloc(error, strlen(text) + 1) : SIFR_OK;
}

static sifr_status make(sifr_context *context, const sifr_config *config,
                        const sifr_plan_options *options, sifr_plan *plan, sifr_error *error) {
    api_plan_report *r = &plan->report;
    BASE_TRY(api_take_options("sifr_plan_options", options, sizeof r->options, &r->options, error));
    if (!r->options.ranks) r->options.ranks = 1;
    BASE_TRY(check_ranks(&r->options, error));
    BASE_TRY(keep_text(r->options.machine, &plan->machine, error));
    BASE_TRY(keep_text(r->options.nvme, &plan->nvme, error));
    r->options.machine = r->machine_file = plan->machine;
    r->options.nvme = plan->nvme;
    r->log = &context->log;
    BASE_TRY(config_copy(config, &r->config, error));
    return api_plan_make(r, error);
}

sifr_status sifr_plan_create(sifr_context *context, const sifr_config *config,
                             const sifr_plan_options *options, sifr_plan **out, sifr_error *error) {
    BASE_ENTER(error, context, config, out);
    sifr_plan *plan;
    BASE_TRY(base_alloc(1, sizeof *plan, &plan, error));
    sifr_status status = make(context, config, options, plan, error);
    if (status == SIFR_OK)
        *out = plan;
    else
        sifr_plan_free(plan);
    return status;
}

void sifr_plan_free(sifr_plan *plan) {
    BASE_ENTER_VOID(plan);
    api_plan_unmake(&plan->report);
    free(plan->machine);
    free(plan->nvme);
    free(plan);
}

/* What a plan can answer depends on whether it is for --fit, and on whether that has been done. */
static sifr_status check_asked(const sifr_plan *plan, bool fit, sifr_error *error) {
    if (plan->report.options.fit != fit)
        return base_fail(error, SIFR_USAGE,
                         fit ? "the plan was made without sifr_plan_options.fit, and chooses "
                               "nothing"
                             : "the plan was made with sifr_plan_options.fit: make one of the "
                               "config that sifr_plan_fit gives");
    if (fit && !plan->chosen)
        return base_fail(error, SIFR_USAGE, "nothing is chosen yet: call sifr_plan_fit first");
    return SIFR_OK;
}

/* --- figures --- */

void sifr_plan_get(const sifr_plan *plan, sifr_plan_figures *out) {
    BASE_ENTER_VOID(plan, out);
    const api_plan_report *r = &plan->report;
    const plan_outcome *o = r->options.fit ? &r->best : &r->own;
    const sifr_settings *step = &o->settings.step;
    double seconds = o->predicted.step_seconds;
    sifr_plan_figures known = {.parameters = sifr_model_parameters(r->model),
                               .bytes = o->total_bytes,
                               .host_bytes = o->host_bytes,
                               .nvme_bytes = o->nvme_bytes,
                               .baseline_bytes = r->limits.baseline,
                               .room_bytes = r->limits.room_bytes,
                               .ranks_per_host = r->machine.ranks_per_host,
                               .micro_batch_size = step->micro_batch_size,
                               .gradient_accumulation_steps = step->gradient_accumulation_steps,
                               .seq_length = step->seq_length,
                               .step_seconds = seconds,
                               .fits = o->fits};
    if (seconds > 0) {
        known.checkpoint_bytes = plan_checkpoint_bytes(r->model, &o->settings);
        known.tokens_per_second = (double)(r->config.train_batch_size * r->length) / seconds;
    }
    api_give_result(&known, sizeof known, out);
}

bool sifr_plan_class_at(const sifr_plan *plan, size_t index, sifr_plan_class *out) {
    BASE_ENTER_OR(false, plan, out);
    const plan_schedule *s = plan->report.schedule;
    int64_t host[PLAN_CLASSES], nvme[PLAN_CLASSES];
    if (index > PLAN_CLASSES || !s) return false;
    if (index == PLAN_CLASSES) {
        int64_t gaps = plan_gap_bytes(s);
        const sifr_plan_class between = {.name = "gaps", .bytes = gaps, .most_bytes = gaps};
        return api_give_result(&between, sizeof between, out);
    }
    plan_offloaded_classes(s, PLAN_HOST, host);
    plan_offloaded_classes(s, PLAN_NVME, nvme);
    const sifr_plan_class known = {.name = plan_class_name((plan_class)index),
                                   .bytes = s->peak_bytes[index],
                                   .most_bytes = s->largest_bytes[index],
                                   .host_bytes = host[index],
                                   .nvme_bytes = nvme[index]};
    return api_give_result(&known, sizeof known, out);
}

sifr_status sifr_plan_fits(const sifr_plan *plan, sifr_error *error) {
    BASE_ENTER(error, plan);
    const sifr_error *reason = &plan->report.too_large;
    BASE_TRY(check_asked(plan, plan->report.options.fit, error));
    if (reason->status == SIFR_OK) return SIFR_OK; /* as all that is chosen */
    return base_fail(error, reason->status, "%s", reason->message);
}

/* --- texts --- */

static sifr_status give_json(json_t *object, char **out, sifr_error *error) {
    *out = object ? json_dumps(object, JSON_INDENT(2)) : NULL;
    json_decref(object);
    return *out ? SIFR_OK : base_fail_alloc(error, 4096);
}

sifr_status sifr_plan_json(sifr_plan *plan, bool schedule, char **out, sifr_error *error) {
    BASE_ENTER(error, plan, out);
    api_plan_report *r = &plan->report;
    char *config;
    BASE_TRY(check_asked(plan, r->options.fit, error));
    if (!r->options.fit) {
        BASE_TRY(api_plan_others(r, error));
        return give_json(api_plan_describe(r, schedule), out, error);
    }
    BASE_TRY(config_text(&r->config, &config, error));
    sifr_status status = give_json(api_plan_describe_fit(r, config), out, error);
    free(config);
    return status;
}

static void write_line(void *user, const char *line) {
    fprintf(user, "%s\n", line);
}

static void write_part(const api_plan_report *r, sifr_plan_part part) {
    switch (part) {
    case SIFR_PLAN_OWN:
        api_plan_print_own(r);
        break;
    case SIFR_PLAN_OTHERS:
        api_plan_print_others(r);
        break;
    case SIFR_PLAN_SCHEDULE:
        plan_dump(r->schedule, write_line, r->to);
        break;
    case SIFR_PLAN_DEEPSPEED:
        api_plan_print_deepspeed(r);
        break;
    case SIFR_PLAN_CHOSEN:
        api_plan_print_fit(r);
        break;
    }
}

sifr_status sifr_plan_text(sifr_plan *plan, sifr_plan_part part, char **out, sifr_error *error) {
    BASE_ENTER(error, plan, out);
    api_plan_report *r = &plan->report;
    size_t size;
    *out = NULL;
    if ((int)part < 0 || part > SIFR_PLAN_CHOSEN)
        return base_fail(error, SIFR_USAGE, "sifr_plan_part: %d is none; give 0 to %d", (int)part,
                         SIFR_PLAN_CHOSEN);
    BASE_TRY(check_asked(plan, part == SIFR_PLAN_CHOSEN, error));
    if (part == SIFR_PLAN_OTHERS || part == SIFR_PLAN_DEEPSPEED)
        BASE_TRY(api_plan_others(r, error));
    r->to = open_memstream(out, &size);
    if (!r->to) return base_fail_alloc(error, 4096);
    write_part(r, part);
    bool failed = ferror(r->to);
    failed |= fclose(r->to) != 0;
    r->to = NULL;
    if (!failed) return SIFR_OK;
    free(*out);
    *out = NULL;
    return base_fail_alloc(error, size + 1);
}

sifr_status sifr_plan_fit(sifr_plan *plan, sifr_config **out, sifr_error *error) {
    BASE_ENTER(error, plan, out);
    api_plan_report *r = &plan->report;
    sifr_config *config;
    if (!r->options.fit || plan->chosen)
        return base_fail(error, SIFR_USAGE,
                         plan->chosen ? "sifr_plan_fit: this plan has chosen; make another one"
                                      : "sifr_plan_fit: the plan was made without "
                                        "sifr_plan_options.fit");
    BASE_TRY(api_plan_fit(r, error));
    BASE_TRY(sifr_config_copy(&r->config, &config, error));
    sifr_status status = sifr_config_resolve(config, r->options.ranks, error);
    if (status != SIFR_OK) {
        sifr_config_free(config);
        return status;
    }
    plan->chosen = true;
    *out = config;
    return SIFR_OK;
}
