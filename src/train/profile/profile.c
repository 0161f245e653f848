#include "train/profile/profile.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/process.h"
#include "train/profile/memory_report.h"
#include "train/report/monitor.h"

static void hear(void *user, const comm_event *event) {
    train_ear *ear = user;
    train_trace_hear(ear->profile->trace, event);
    train_comms_log_hear(ear->profile->comms, ear->span, event);
}

/* Hears all groups of the mesh, or none any longer. */
static void watch(train_profile *p, bool on) {
    engine_group_of list[ENGINE_GROUPS];
    int groups = engine_groups_list(engine_groups_of(p->engine), list);
    for (int i = 0; i < groups; i++) {
        p->ears[i] = (train_ear){p, list[i].span};
        comm_watch(list[i].group, on ? hear : NULL, on ? &p->ears[i] : NULL);
    }
}

/* The second to fourth step, since the first one is not typical. */
static sifr_status open_trace(train_profile *p, int64_t total_steps, sifr_error *error) {
    const sifr_config *c = p->config;
    int64_t first = c->trace_first, last = c->trace_last, done = p->first_step;
    if (first > total_steps)
        return base_fail(error, SIFR_USAGE,
                         "trace_steps %lld..%lld: the run has only %lld steps; trace some of those",
                         (long long)first, (long long)last, (long long)total_steps);
    if (first == 0) {
        first = base_max_i64(base_min_i64(done + 2, total_steps), 1);
        last = done + 4;
    }
    return train_trace_open(p->engine, c->trace, first, base_min_i64(last, total_steps), &p->trace,
                            error);
}

static sifr_status predict(train_profile *p, const plan_machine *machine, sifr_error *error) {
    const plan_schedule *s = engine_schedule(p->engine);
    plan_prediction prediction;
    BASE_TRY(base_alloc(s->instruction_count, sizeof *p->planned, &p->planned, error));
    return plan_predict(s, machine, &prediction, p->planned, error);
}

static void say_slower(const train_profile *p) {
    if (device_is_hidden(engine_device(p->engine)))
        train_say(p->host, "profile: the GPU ends each instruction before the next while its times "
                           "are asked for, so these steps are slower");
}

sifr_status train_profile_open(train_profile *p, const sifr_config *config, const train_host *host,
                               sifr_engine *engine, const plan_machine *machine, uint64_t baseline,
                               int64_t total_steps, sifr_error *error) {
    *p = (train_profile){.config = config,
                         .host = host,
                         .engine = engine,
                         .baseline = baseline,
                         .first_step = sifr_engine_steps(engine)};
    if (config->wall_clock_breakdown && machine) BASE_TRY(predict(p, machine, error));
    if (config->activations.profile)
        BASE_TRY(train_unit_times_open(&p->units, engine_schedule(engine), error));
    bool first = comm_rank(engine_group(engine)) == 0;
    if (config->flops_profiler.enabled && first)
        BASE_TRY(
            train_flops_open(&p->flops, &config->flops_profiler, engine_schedule(engine), error));
    bool times = config->wall_clock_breakdown || config->activations.profile || p->flops.config;
    engine_time_each(engine_trainer(engine), times);
    if (times || config->trace) say_slower(p);
    if (config->trace) BASE_TRY(open_trace(p, total_steps, error));
    if (!config->comms_logger.enabled) return SIFR_OK;
    return train_comms_log_open(engine_schedule(engine),
                                engine_groups_at(engine_groups_of(engine), PLAN_DATA),
                                &config->comms_logger, host, &p->comms, error);
}

void train_profile_close(train_profile *p) {
    if (p->engine) watch(p, false); /* the last step may have failed */
    train_trace_close(p->trace);
    train_comms_log_close(p->comms);
    train_unit_times_close(&p->units);
    train_flops_close(&p->flops);
    free(p->planned);
    p->trace = NULL;
    p->comms = NULL;
    p->planned = NULL;
}

static sifr_status say_memory(const train_profile *p, const char *when, sifr_error *error) {
    if (!p->config->memory_breakdown) return SIFR_OK;
    uint64_t memory = base_process_memory();
    train_memory_now now = {.measured = memory > p->baseline ? memory - p->baseline : 0,
                            .profiling =
                                train_trace_bytes(p->trace) + train_comms_log_bytes(p->comms)};
    return train_memory_say(p->engine, &now, when, p->host, error);
}

sifr_status train_profile_start(train_profile *p, sifr_error *error) {
    return say_memory(p, "before the first step", error);
}

void train_profile_begin_step(train_profile *p) {
    if (!p->trace && !p->comms) return;
    watch(p, true);
    train_trace_begin(p->trace);
}

void train_profile_end_step(train_profile *p) {
    train_trace_end(p->trace);
    watch(p, false);
}

/* The run goes on if the trace cannot be written. */
static sifr_status write_trace(train_profile *p, sifr_error *error) {
    int64_t steps = train_trace_steps(p->trace);
    sifr_status status = train_trace_write(p->trace, error);
    if (status == SIFR_LOST_RANK) return status;
    if (status != SIFR_OK)
        base_log(p->host->log, SIFR_LOG_WARNING, "no trace is written: %s",
                 error ? error->message : "it failed");
    else if (steps == 0)
        base_log(p->host->log, SIFR_LOG_WARNING,
                 "%s: none of the steps to be traced was run; the timeline is empty",
                 p->config->trace);
    else
        train_say(p->host, "trace: %lld step%s in %s, for ui.perfetto.dev", (long long)steps,
                  steps == 1 ? "" : "s", p->config->trace);
    if (error) *error = (sifr_error){0};
    return SIFR_OK;
}

sifr_status train_profile_step(train_profile *p, double seconds, sifr_error *error) {
    double start = base_seconds();
    if (p->config->wall_clock_breakdown)
        train_breakdown_add(&p->breakdown, engine_schedule(p->engine),
                            engine_seconds(engine_trainer(p->engine)), p->planned, seconds);
    train_unit_times_add(&p->units, engine_seconds(engine_trainer(p->engine)));
    BASE_TRY(train_flops_step(&p->flops, sifr_engine_steps(p->engine),
                              engine_seconds(engine_trainer(p->engine)), seconds, p->host, error));
    BASE_TRY(train_comms_log_step(p->comms, error));
    if (sifr_engine_steps(p->engine) == p->first_step + 1)
        BASE_TRY(say_memory(p, "after the first step", error));
    if (train_trace_ready(p->trace)) BASE_TRY(write_trace(p, error));
    p->pause = base_seconds() - start;
    return SIFR_OK;
}

sifr_status train_profile_end(train_profile *p, sifr_error *error) {
    if (p->trace && !train_trace_written(p->trace)) BASE_TRY(write_trace(p, error));
    if (p->config->wall_clock_breakdown)
        BASE_TRY(train_breakdown_say(&p->breakdown, engine_group(p->engine), p->host, error));
    if (p->flops.config && !p->flops.done)
        base_log(p->host->log, SIFR_LOG_WARNING,
                 "flops_profiler.profile_step %lld: that step was not run, so nothing was counted",
                 (long long)p->flops.config->profile_step);
    BASE_TRY(train_unit_times_say(&p->units, engine_group(p->engine), p->host, error));
    BASE_TRY(train_comms_log_say(p->comms, error));
    return say_memory(p, "at the end", error);
}
