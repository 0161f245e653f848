#include "train/loop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/json.h"
#include "checkpoint/directory.h"
#include "plan/queries.h"
#include "train/prepare/pinned.h"
#include "train/prepare/run_data.h"
#include "train/report/announce.h"
#include "train/report/notices.h"
#include "train/report/places.h"
#include "train/report/run_summary.h"
#include "train/run.h"

/* This many skipped steps in a row mean that the run has diverged. */
enum { SKIP_LIMIT = 100 };

static void tell_saved(const train_state *t, bool model, const char *path) {
    const train_save_event event = {
        .model = model, .step = sifr_engine_steps(t->engine), .path = path};
    if (t->host->saved) t->host->saved(t->host->user, &event);
}

static void tell_checkpoint(const train_state *t) {
    checkpoint_names names;
    char path[BASE_PATH_LENGTH];
    checkpoint_name(sifr_engine_steps(t->engine), &names);
    if (base_path_join(path, t->config->output, names.final, NULL) == SIFR_OK)
        tell_saved(t, false, path);
}

/* `beside`: disk space to leave for the trained model, which is still to be written. */
static sifr_status save(train_state *t, int64_t beside, sifr_error *error) {
    double start = base_seconds();
    json_t *state =
        json_pack("{s:I, s:I, s:I, s:o}", "samples",
                  (json_int_t)data_epochs_trained(&t->epochs, sifr_engine_steps(t->engine)),
                  "total_steps", (json_int_t)t->total_steps, "last_batch_iteration",
                  (json_int_t)(sifr_engine_updates(t->engine) - 1), "monitor",
                  train_monitor_state(&t->monitor));
    json_t *trainer = train_monitor_trainer_state(&t->monitor, sifr_engine_steps(t->engine));
    bool whole = state && trainer && train_pinned_put(state, &engine_schedule(t->engine)->settings);
    base_json_list history = train_monitor_history(&t->monitor);
    sifr_status status = whole ? SIFR_OK : base_fail_alloc(error, 4096);
    status = train_agree(t, status, error);
    if (status == SIFR_OK) {
        checkpoint_record record = {.must_match = t->must_match,
                                    .may_differ = t->may_differ,
                                    .state = state,
                                    .trainer = trainer,
                                    .history = &history,
                                    .tensors = t->tensors,
                                    .base = &t->base};
        checkpoint_settings settings = {.keep = t->config->save_total_limit, .beside = beside};
        status =
            checkpoint_save(t->engine, t->config->output, &record, &settings, t->host->log, error);
    }
    if (status == SIFR_OK) t->saved_step = sifr_engine_steps(t->engine);
    train_monitor_pause(&t->monitor, base_seconds() - start);
    json_decref(state);
    json_decref(trainer);
    if (status == SIFR_OK) tell_checkpoint(t);
    return status;
}

/* A checkpoint that cannot be written during the run (say, on a full disk) is skipped: all ranks
 * know of it, and older checkpoints are unchanged. */
static sifr_status save_on_the_way(train_state *t, sifr_error *error) {
    sifr_error reason = {0};
    int64_t model = t->lora.json ? sifr_model_trained(t->folder.model) * (int64_t)sizeof(float)
                                 : (int64_t)formats_weights_bytes(t->folder.weights);
    sifr_status status = save(t, model, &reason);
    if (status == SIFR_FAILED) {
        base_log(t->host->log, SIFR_LOG_WARNING, "step %lld: no checkpoint (%s); the run continues",
                 (long long)sifr_engine_steps(t->engine), reason.message);
        return SIFR_OK;
    }
    if (status != SIFR_OK) base_set_error(error, status, "%s", reason.message);
    return status;
}

static const char *skip_reason(const train_state *t, const sifr_step_result *result) {
    if (result->labelled == 0)
        return t->objective->pairs ? "no pair has a label" : "no token has a label";
    if (!isfinite(result->loss)) return "the loss is not finite";
    return t->config->step.precision == SIFR_FP16 ? "a gradient overflows fp16"
                                                  : "a gradient is not finite";
}

/* Skipped steps while a dynamic loss scale is found are not divergence; they end by themselves. */
static bool is_search(const train_state *t, const sifr_step_result *result) {
    return t->config->step.precision == SIFR_FP16 && t->config->step.fp16.loss_scale <= 0 &&
           result->labelled > 0;
}

static sifr_status note_skipped(train_state *t, const sifr_step_result *result, sifr_error *error) {
    if (result->updated) {
        t->skipped_in_row = 0;
        return SIFR_OK;
    }
    const char *reason = skip_reason(t, result);
    if (is_search(t, result)) {
        base_log(t->host->log, SIFR_LOG_INFO,
                 "step %lld skipped: %s; the loss scale was %g, the next step has %g",
                 (long long)sifr_engine_steps(t->engine), reason, result->loss_scale,
                 sifr_engine_loss_scale(t->engine));
        return SIFR_OK;
    }
    base_log(t->host->log, SIFR_LOG_WARNING, "step %lld skipped: %s; the weights are unchanged",
             (long long)sifr_engine_steps(t->engine), reason);
    if (++t->skipped_in_row < SKIP_LIMIT) return SIFR_OK;
    sifr_status status =
        base_fail(error, SIFR_FAILED,
                  "%d steps in a row were skipped (%s): the run has diverged; lower the learning "
                  "rate, or go back to an older checkpoint",
                  SKIP_LIMIT, reason);
    return train_agree(t, status, error);
}

static sifr_status fetch(train_state *t, sifr_error *error) {
    const plan_settings *settings = &engine_schedule(t->engine)->settings;
    int64_t sequences =
        t->config->step.micro_batch_size * settings->step.gradient_accumulation_steps;
    train_fetch(t, settings, sifr_engine_steps(t->engine), &t->rows);
    sifr_batch batch = data_rows_batch(&t->rows);
    return engine_check_batch(engine_model(t->engine), &batch, sequences * t->length, t->length,
                              error);
}

/* What the groups had moved at some time. */
typedef struct wire_mark {
    comm_ledger of[ENGINE_GROUPS];
} wire_mark;

static wire_mark mark_wire(const train_state *t) {
    engine_group_of list[ENGINE_GROUPS];
    wire_mark mark = {0};
    int groups = engine_groups_list(engine_groups_of(t->engine), list);
    for (int i = 0; i < groups; i++) mark.of[i] = *comm_get_ledger(list[i].group);
    return mark;
}

static void add_moved(comm_ledger *sum, const comm_ledger *after, const comm_ledger *before) {
    for (int o = 0; o < COMM_OPERATIONS; o++) {
        sum->operation[o].calls += after->operation[o].calls - before->operation[o].calls;
        sum->operation[o].bytes += after->operation[o].bytes - before->operation[o].bytes;
        sum->operation[o].crossed += after->operation[o].crossed - before->operation[o].crossed;
        sum->operation[o].seconds += after->operation[o].seconds - before->operation[o].seconds;
    }
}

/* Stages may have two groups. */
static comm_ledger *ledger_of(train_wire *wire, plan_span span) {
    int i = 0;
    while (i < wire->groups && wire->of[i].span != span) i++;
    if (i == wire->groups) wire->of[wire->groups++].span = span;
    return &wire->of[i].ledger;
}

static void count_wire(train_state *t, const wire_mark *before) {
    engine_group_of list[ENGINE_GROUPS];
    int groups = engine_groups_list(engine_groups_of(t->engine), list);
    for (int i = 0; i < groups; i++) {
        const comm_ledger *after = comm_get_ledger(list[i].group);
        add_moved(ledger_of(&t->wire, list[i].span), after, &before->of[i]);
        add_moved(&t->wire.ledger, after, &before->of[i]);
    }
}

static void add_planned(train_planned *sum, const train_planned *step) {
    sum->gathered += step->gathered;
    sum->reduced += step->reduced;
    sum->received += step->received;
    sum->exchanged += step->exchanged;
}

/* Of all spans that have the group of `span`: that of all ranks stands for shards, too, where there
 * are no other axes. */
static train_planned planned_of(const engine_groups *groups, const plan_schedule *s,
                                plan_span span) {
    const comm_group *group = engine_groups_at(groups, span);
    train_planned sum = {.received = span == PLAN_STAGES ? plan_received(s) : 0};
    for (int i = 0; i < ENGINE_GROUPS; i++) {
        plan_span other = groups->of[i].span;
        if (groups->of[i].group != group) continue;
        train_planned of = {.exchanged = plan_exchanged_of(s, other)};
        plan_wire_of(s, other, &of.gathered, &of.reduced);
        add_planned(&sum, &of);
    }
    return sum;
}

static void count_planned(train_state *t) {
    const plan_schedule *s = engine_schedule(t->engine);
    train_planned step = {.received = plan_received(s), .exchanged = plan_exchanged(s)};
    plan_wire(s, &step.gathered, &step.reduced);
    add_planned(&t->wire.planned, &step);
    for (int i = 0; i < t->wire.groups; i++) {
        step = planned_of(engine_groups_of(t->engine), s, t->wire.of[i].span);
        add_planned(&t->wire.of[i].planned, &step);
    }
}

/* Carries out a delayed update now: before a checkpoint or an evaluation, and after the last step.
 */
static sifr_status settle(train_state *t, sifr_error *error) {
    double start = base_seconds();
    wire_mark before = mark_wire(t);
    BASE_TRY(engine_settle(t->engine, error));
    count_wire(t, &before);
    t->step_seconds += base_seconds() - start;
    return SIFR_OK;
}

/* Once: what the device could do faster. It may only know after a step. */
static void say_slow(train_state *t) {
    const char *line = device_notice(engine_device(t->engine));
    if (t->said_slow || !line[0]) return;
    base_log(t->host->log, SIFR_LOG_WARNING, "%s", line);
    t->said_slow = true;
}

static sifr_status measure(train_state *t, sifr_error *error) {
    double measures[TRAIN_MEASURES] = {0};
    if (!t->objective->measure) return SIFR_OK;
    BASE_TRY(t->objective->measure(t, measures, error));
    if (t->first) train_monitor_measured(&t->monitor, measures);
    return SIFR_OK;
}

/* *local is a failure of the first rank alone. */
static void tell_step(train_state *t, const sifr_step_result *result, double rate, double seconds,
                      sifr_status *local, sifr_error *error) {
    const train_step_event event = {
        .step = sifr_engine_steps(t->engine),
        .rate = rate,
        .next_rate = config_lr_at(&t->config->schedule, sifr_engine_updates(t->engine) - 1),
        .next_scale = sifr_engine_loss_scale(t->engine),
        .seconds = seconds,
        .result = result};
    if (t->first)
        *local = train_monitor_step(&t->monitor, &event, error);
    else
        train_monitor_watch(&t->monitor, event.step);
    if (t->host->stepped) t->host->stepped(t->host->user, &event);
}

/* Runs a step on the batch that fetch() read. *local is a failure of this rank alone, reported at
 * the next agreement. */
static sifr_status step(train_state *t, sifr_status *local, sifr_error *error) {
    const sifr_config *c = t->config;
    sifr_step_result result;
    double start = base_seconds();
    wire_mark before = mark_wire(t);
    int64_t before_step = sifr_engine_updates(t->engine) - 1;
    double rate = config_lr_at(&c->schedule, before_step);
    BASE_TRY(sifr_engine_set_betas(
        t->engine, config_lr_beta1_at(&c->schedule, before_step, c->step.optimizer.beta1),
        config_lr_beta2_at(&c->schedule, c->step.optimizer.beta2), error));
    train_profile_begin_step(&t->profile);
    sifr_batch batch = data_rows_batch(&t->rows);
    sifr_status status = sifr_engine_step(t->engine, &batch, rate, &result, error);
    /* All ranks exhaust the loss scale together; any other failure is this rank's own. */
    if (status != SIFR_OK)
        return engine_scaler(t->engine)->exhausted ? train_agree(t, status, error) : status;
    train_profile_end_step(&t->profile);
    say_slow(t);
    count_wire(t, &before);
    count_planned(t);
    double seconds = base_seconds() - start;
    t->step_seconds += seconds;
    BASE_TRY(note_skipped(t, &result, error));
    BASE_TRY(measure(t, error));
    tell_step(t, &result, rate, seconds, local, error);
    BASE_TRY(train_profile_step(&t->profile, seconds, error));
    train_monitor_pause(&t->monitor, t->profile.pause);
    if (c->save_steps <= 0 || sifr_engine_steps(t->engine) % c->save_steps) return SIFR_OK;
    BASE_TRY(settle(t, error));
    return train_agree(t, save_on_the_way(t, error), error);
}

/* Evaluates if this step is due and has no evaluation yet. A run that was stopped between its
 * checkpoint and its evaluation may lack one. */
static bool evaluation_is_due(const train_state *t) {
    int64_t every = t->config->eval_steps, now = sifr_engine_steps(t->engine);
    bool due = now == t->total_steps || (every > 0 && now > 0 && now % every == 0) ||
               (now == 0 && t->config->eval_on_start);
    return t->held_out && due && !train_monitor_evaluated(&t->monitor, now);
}

static int asked_to_stop(void *user) {
    return train_stopped(user);
}

static sifr_status evaluate(train_state *t, sifr_status *local, sifr_error *error) {
    train_evaluation evaluation;
    int signal;
    BASE_TRY(train_evaluate(t->engine, t->held_out, t->objective->evaluated,
                            t->config->step.micro_batch_size, t->length,
                            t->config->max_eval_windows, asked_to_stop, (void *)(uintptr_t)t->host,
                            &evaluation, &signal, error));
    if (t->first && !signal)
        *local =
            train_monitor_evaluation(&t->monitor, sifr_engine_steps(t->engine), &evaluation, error);
    if (t->host->evaluated && !signal)
        t->host->evaluated(t->host->user, sifr_engine_steps(t->engine), &evaluation);
    return SIFR_OK;
}

/* *word holds this rank's values before the call and the agreed ones after it: the first rank's,
 * but for signals, which may reach any rank: that of the first one that has any. */
static sifr_status decide(train_state *t, train_word *word, sifr_error *error) {
    BASE_TRY(comm_all_gather_control(t->group, word, sizeof *word, t->words, error));
    const train_word *words = t->words;
    sifr_status own = (sifr_status)word->status;
    bool failed = false;
    word->evaluate = words[0].evaluate;
    word->signal = 0;
    for (int32_t r = 0; r < comm_size(t->group); r++) {
        failed |= words[r].status != SIFR_OK;
        if (!word->signal) word->signal = words[r].signal;
    }
    return failed ? train_agree(t, own, error) : SIFR_OK;
}

static sifr_status run_steps(train_state *t, train_outcome *outcome, sifr_error *error) {
    sifr_status local = SIFR_OK;
    int64_t fetched = -1;
    for (;;) {
        if (local == SIFR_OK && fetched != sifr_engine_steps(t->engine) &&
            sifr_engine_steps(t->engine) < t->total_steps) {
            local = fetch(t, error);
            fetched = sifr_engine_steps(t->engine);
        }
        train_word word = {(int32_t)local, train_stopped(t->host),
                           t->first && evaluation_is_due(t)};
        BASE_TRY(decide(t, &word, error));
        outcome->signal = word.signal;
        if (word.signal) break;
        if (word.evaluate) {
            BASE_TRY(settle(t, error));
            BASE_TRY(evaluate(t, &local, error));
        } else {
            if (sifr_engine_steps(t->engine) >= t->total_steps) break;
            BASE_TRY(step(t, &local, error));
        }
    }
    return settle(t, error);
}

static sifr_status save_model(train_state *t, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    sifr_status same = t->first ? checkpoint_base_check(&t->base, t->folder.model, error) : SIFR_OK;
    BASE_TRY(train_agree(t, same, error));
    sifr_status saved = engine_save_folder(t->engine, t->folder.architecture, t->folder.weights,
                                           BASE_FP32, t->config->output, error);
    BASE_TRY(train_agree(t, saved, error));
    BASE_TRY(train_save_average(t, error));
    if (!t->first) return SIFR_OK;
    BASE_TRY(base_path_join(path, t->config->output, "trainer_state.json", error));
    json_t *trainer = train_monitor_trainer_state(&t->monitor, sifr_engine_steps(t->engine));
    if (!trainer) return base_fail_alloc(error, 4096);
    base_json_list history = train_monitor_history(&t->monitor);
    sifr_status status = base_json_save_with(trainer, &history, path, error);
    json_decref(trainer);
    return status;
}

static sifr_status save_last(train_state *t, sifr_error *error) {
    if (t->saved_step == sifr_engine_steps(t->engine)) return SIFR_OK;
    return train_agree(t, save(t, 0, error), error);
}

/* Writes the trained model first, then the last checkpoint, which is larger, in the space that is
 * left. If the model cannot be written, the checkpoint still may be. */
static sifr_status save_result(train_state *t, sifr_error *error) {
    sifr_error reason = {0}, why = {0};
    sifr_status model = train_agree(t, save_model(t, &reason), &reason);
    if (model != SIFR_OK && model != SIFR_FAILED)
        return base_fail(error, model, "%s", reason.message);
    if (model == SIFR_OK) tell_saved(t, true, t->config->output);
    sifr_status last = save_last(t, &why);
    if (last != SIFR_OK && last != SIFR_FAILED) return base_fail(error, last, "%s", why.message);
    if (model == SIFR_OK && last == SIFR_OK) return SIFR_OK;
    if (model == SIFR_OK) {
        base_log(t->host->log, SIFR_LOG_WARNING,
                 "step %lld: the model is written, but no checkpoint (%s); a longer run would "
                 "resume from an older one",
                 (long long)sifr_engine_steps(t->engine), why.message);
        return SIFR_OK;
    }
    base_set_error(error, model, "the model is not written: %s; %s", reason.message,
                   last == SIFR_OK
                       ? "the last checkpoint holds it: free some disk space and give --resume, or "
                         "write it to another disk with `sifr export`"
                       : "nor is its last checkpoint; free some disk space and give --resume");
    return train_agree(t, model, error);
}

static sifr_status check_learned(train_state *t, sifr_error *error) {
    const sifr_config *c = t->config;
    if (sifr_engine_steps(t->engine) == 0 || sifr_engine_updates(t->engine) > 0) return SIFR_OK;
    BASE_TRY(save_last(t, error));
    sifr_status status =
        base_fail(error, SIFR_FAILED,
                  "all %lld steps were skipped: nothing was learned, and no model is written; "
                  "check the weights in %s%s",
                  (long long)sifr_engine_steps(t->engine), c->model,
                  c->step.precision == SIFR_FP16
                      ? "; in fp16 the first steps search for a loss scale: try more "
                        "steps, or a lower initial_scale_power"
                      : "");
    return train_agree(t, status, error);
}

/* A run that was asked to stop saves only a checkpoint. */
static sifr_status save_end(train_state *t, int signal, sifr_error *error) {
    if (signal) return save_last(t, error);
    BASE_TRY(check_learned(t, error));
    return save_result(t, error);
}

/* What was done, also where the run fails after it. */
static void note_outcome(const train_state *t, train_outcome *outcome) {
    outcome->steps = sifr_engine_steps(t->engine);
    /* A resumed run may have made more than it is now asked for. */
    outcome->total_steps = base_max_i64(t->total_steps, outcome->steps);
    int64_t trained = data_epochs_trained(&t->epochs, outcome->steps);
    outcome->tokens = (trained - data_epochs_trained(&t->epochs, outcome->first_step)) * t->length;
    outcome->step_seconds = t->step_seconds;
    outcome->skipped = t->monitor.skipped;
    outcome->loss = t->monitor.last_loss;
    outcome->eval_loss = t->monitor.last_eval_loss;
    outcome->classifies = !t->objective->perplexity;
    outcome->planned_bytes = sifr_engine_planned_bytes(t->engine);
    outcome->baseline_bytes = (int64_t)t->baseline;
    memcpy(outcome->planned_classes, engine_schedule(t->engine)->peak_bytes,
           sizeof outcome->planned_classes);
    outcome->wire = t->wire;
}

/* Before the first step: what is planned, and that the run is going on. */
static void begin_summary(train_state *t, train_outcome *outcome) {
    outcome->first_step = sifr_engine_steps(t->engine);
    note_outcome(t, outcome);
    if (t->first) train_summary_write(t->config, outcome, TRAIN_RUNNING, NULL, t->host->log);
}

/* A disk that is full is said once: by the run's own failure, where there is one. */
static void end_summary(const train_state *t, const train_outcome *outcome, sifr_status status,
                        const sifr_error *error) {
    bool failed = status != SIFR_OK;
    train_end end = failed ? TRAIN_FAILED : outcome->signal ? TRAIN_STOPPED : TRAIN_DONE;
    if (t->first && t->begun)
        train_summary_write(t->config, outcome, end, failed ? error->message : NULL,
                            failed ? NULL : t->host->log);
}

static sifr_status run(train_state *t, train_outcome *outcome, sifr_error *error) {
    const sifr_config *c = t->config;
    BASE_TRY(train_prepare(t, error));
    train_say_run(t);
    say_slow(t);
    train_say_notices(t->host, c, engine_schedule(t->engine), sifr_engine_updates(t->engine),
                      t->total_steps);
    if (sifr_engine_steps(t->engine) >= t->total_steps)
        train_say(t->host, "nothing left to train: step %lld of %lld is already done",
                  (long long)sifr_engine_steps(t->engine), (long long)t->total_steps);
    begin_summary(t, outcome);
    if (t->host->begin) t->host->begin(t->host->user, outcome->first_step, outcome->total_steps);
    BASE_TRY(train_profile_start(&t->profile, error));
    double start = base_seconds();
    sifr_status status = run_steps(t, outcome, error);
    if (status == SIFR_OK) status = save_end(t, outcome->signal, error);
    outcome->seconds = base_seconds() - start;
    note_outcome(t, outcome);
    BASE_TRY(status);
    BASE_TRY(train_profile_end(&t->profile, error));
    BASE_TRY(train_measure_memory(t, outcome, error));
    return train_ran_of_all(t->engine, t->group, &outcome->ran, error);
}

sifr_status train_run(sifr_config *config, comm_group *group, const train_host *host,
                      train_outcome *outcome, sifr_error *error) {
    train_state *t;
    *outcome = (train_outcome){.loss = NAN, .eval_loss = NAN, .ranks = comm_size(group)};
    sifr_status status = base_alloc(1, sizeof *t, &t, error);
    size_t ranks = (size_t)comm_size(group);
    if (status == SIFR_OK) status = base_alloc(ranks, sizeof *t->words, &t->words, error);
    status = comm_agree_status(group, status, error);
    if (status == SIFR_OK) {
        t->config = config;
        t->group = group;
        t->first = comm_rank(group) == 0;
        t->silent = (train_host){.threads = host->threads,
                                 .begin = host->begin,
                                 .stopped = host->stopped,
                                 .stepped = host->stepped,
                                 .evaluated = host->evaluated,
                                 .saved = host->saved,
                                 .user = host->user};
        t->host = t->first ? host : &t->silent;
        status = run(t, outcome, error);
        outcome->alone = status != SIFR_OK && !t->agreed;
        end_summary(t, outcome, status, error);
    }
    if (!t) return status;
    if (status == SIFR_LOST_RANK && t->engine)
        train_name_places(&engine_schedule(t->engine)->settings.mesh, error);
    if (status != SIFR_OK && !t->begun) checkpoint_output_undo(&t->output);
    if (status != SIFR_OK) train_queue_failed(t->queue);
    train_close(t);
    free(t);
    return status;
}
