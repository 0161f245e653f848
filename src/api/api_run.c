#include "sifr/run.h"

#include <math.h>
#include <string.h>

#include "api/api_context.h"
#include "api/api_ranks.h"
#include "base/inside.h"
#include "train/loop.h"
#include "train/prepare/share_cores.h"
#include "train/report/run_summary.h"

/* A run between its caller and the training loop. */
typedef struct api_run {
    const sifr_train_options *options;
    int64_t step, total; /* the last that was heard of */
    int asked;           /* the number that asks for a stop */
} api_run;

static void note_asked(api_run *run, int answer) {
    if (answer) run->asked = answer;
}

/* --- of the training loop to the caller --- */

static void write_line(void *user, const char *text) {
    const api_run *run = user;
    BASE_OUT(run->options->line(run->options->user, text));
}

static void write_live(void *user, const char *text) {
    const api_run *run = user;
    BASE_OUT(run->options->live(run->options->user, text));
}

static int live_columns(void *user) {
    const api_run *run = user;
    return BASE_OUT(run->options->columns(run->options->user));
}

static void tell_progress(api_run *run, bool begins) {
    const sifr_train_options *options = run->options;
    const sifr_train_progress progress = {
        .size = sizeof progress, .begins = begins, .step = run->step, .total_steps = run->total};
    if (options->progress) note_asked(run, BASE_OUT(options->progress(options->user, &progress)));
}

static void begin(void *user, int64_t step, int64_t total) {
    api_run *run = user;
    run->step = step;
    run->total = total;
    tell_progress(run, true);
}

static int stopped(void *user) {
    api_run *run = user;
    tell_progress(run, false);
    return run->asked;
}

static void stepped(void *user, const train_step_event *event) {
    api_run *run = user;
    const sifr_train_options *options = run->options;
    const sifr_step_result *result = event->result;
    const sifr_train_step step = {.size = sizeof step,
                                  .step = event->step,
                                  .total_steps = run->total,
                                  .loss = result->loss,
                                  .labelled = result->labelled,
                                  .gradient_norm = result->gradient_norm,
                                  .loss_scale = result->loss_scale,
                                  .learning_rate = event->rate,
                                  .seconds = event->seconds,
                                  .updated = result->updated};
    run->step = event->step;
    if (options->step) note_asked(run, BASE_OUT(options->step(options->user, &step)));
}

static void evaluated(void *user, int64_t step, const train_evaluation *e) {
    api_run *run = user;
    const sifr_train_options *options = run->options;
    sifr_train_score scores[TRAIN_MOST_SCORES];
    for (int i = 0; i < e->scores.count; i++)
        scores[i] = (sifr_train_score){e->scores.items[i].name, e->scores.items[i].value};
    const sifr_train_evaluation evaluation = {.size = sizeof evaluation,
                                              .step = step,
                                              .windows = e->windows,
                                              .tokens = e->tokens,
                                              .loss = e->loss,
                                              .seconds = e->seconds,
                                              .scores = scores,
                                              .score_count = e->scores.count};
    if (options->evaluation)
        note_asked(run, BASE_OUT(options->evaluation(options->user, &evaluation)));
}

static void saved(void *user, const train_save_event *event) {
    api_run *run = user;
    const sifr_train_options *options = run->options;
    const sifr_train_save save = {
        .size = sizeof save, .model = event->model, .step = event->step, .path = event->path};
    if (options->saved) note_asked(run, BASE_OUT(options->saved(options->user, &save)));
}

/* --- the run --- */

static void give_outcome(const train_outcome *o, char *report, sifr_train_outcome *out) {
    const sifr_train_outcome known = {.ranks = (int)o->ranks,
                                      .stopped = o->signal,
                                      .first_step = o->first_step,
                                      .steps = o->steps,
                                      .total_steps = o->total_steps,
                                      .tokens = o->tokens,
                                      .skipped = o->skipped,
                                      .loss = o->loss,
                                      .eval_loss = o->eval_loss,
                                      .has_perplexity = !o->classifies,
                                      .seconds = o->seconds,
                                      .step_seconds = o->step_seconds,
                                      .planned_bytes = o->planned_bytes,
                                      .measured_bytes = o->measured_bytes,
                                      .baseline_bytes = o->baseline_bytes,
                                      .alone = o->alone,
                                      .report = report};
    api_give_result(&known, sizeof known, out);
}

/* With a config of the run's own, which it resolves. */
static sifr_status run_it(sifr_context *context, sifr_config *config, sifr_ranks *ranks,
                          const sifr_train_options *options, sifr_train_outcome *out,
                          sifr_error *error) {
    api_run run = {.options = options};
    train_host host = {.log = &context->log,
                       .line = options->line ? write_line : NULL,
                       .live = options->live ? write_live : NULL,
                       .columns = options->columns ? live_columns : NULL,
                       .chart = options->chart,
                       .begin = begin,
                       .stopped = stopped,
                       .stepped = stepped,
                       .evaluated = evaluated,
                       .saved = saved,
                       .user = &run};
    train_outcome outcome;
    char *report = NULL;
    BASE_TRY(train_share_cores(ranks->group, &host, error));
    sifr_status status = train_run(config, ranks->group, &host, &outcome, error);
    bool wanted = options->report && comm_rank(ranks->group) == 0;
    train_end end = outcome.signal ? TRAIN_STOPPED : TRAIN_DONE;
    if (status == SIFR_OK && wanted)
        status = train_summary_text(config, &outcome, end, NULL, &report, error);
    give_outcome(&outcome, report, out);
    return status;
}

/* What a rank can fail in by itself comes first, and all hear of it. */
static sifr_status prepare(const sifr_config *config, sifr_ranks *ranks,
                           const sifr_train_options *given, sifr_train_options *options,
                           sifr_config *own, sifr_error *error) {
    memset(own, 0, sizeof *own);
    sifr_status status =
        api_take_options("sifr_train_options", given, sizeof *options, options, error);
    if (status == SIFR_OK) status = config_copy(config, own, error);
    return sifr_ranks_agree(ranks, status, error);
}

sifr_status sifr_train(sifr_context *context, const sifr_config *config, sifr_ranks *ranks,
                       const sifr_train_options *options, sifr_train_outcome *outcome,
                       sifr_error *error) {
    BASE_ENTER(error, context, config, outcome);
    const train_outcome none = {.loss = NAN, .eval_loss = NAN};
    sifr_train_options known;
    sifr_config own;
    sifr_ranks *alone = NULL;
    BASE_TRY(api_check_result("sifr_train_outcome", outcome, error));
    give_outcome(&none, NULL, outcome);
    if (!ranks)
        BASE_TRY(sifr_ranks_open(
            context, &(sifr_ranks_options){.size = sizeof(sifr_ranks_options), .alone = true},
            &alone, error));
    if (alone) ranks = alone;
    sifr_status status = prepare(config, ranks, options, &known, &own, error);
    if (status == SIFR_OK) status = run_it(context, &own, ranks, &known, outcome, error);
    config_free(&own);
    sifr_ranks_close(alone);
    return status;
}
