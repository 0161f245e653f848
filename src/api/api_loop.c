#include "api/api_loop.h"

#include <stdlib.h>

#include "api/api_context.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/inside.h"
#include "plan/queries.h"
#include "train/prepare/share_cores.h"

static sifr_status set_steps(sifr_loop *loop, int64_t total, sifr_error *error) {
    BASE_TRY(config_set_total_steps(&loop->config, total, error));
    loop->state.total_steps = total;
    loop->counted = true;
    return SIFR_OK;
}

static sifr_status prepare(sifr_context *context, sifr_loop *loop, sifr_error *error) {
    train_state *t = &loop->state;
    t->config = &loop->config;
    t->group = loop->ranks->group;
    t->first = comm_rank(t->group) == 0;
    t->host = &loop->host;
    t->output.lock = -1;
    if (t->first) loop->host.log = &context->log;
    BASE_TRY(train_share_cores(t->group, &loop->host, error));
    BASE_TRY(train_prepare_engine(t, error));
    return loop->config.max_steps > 0 ? set_steps(loop, loop->config.max_steps, error) : SIFR_OK;
}

sifr_status sifr_loop_open(sifr_context *context, const sifr_config *config, sifr_ranks *ranks,
                           sifr_loop **out, sifr_error *error) {
    BASE_ENTER(error, context, config, out);
    const sifr_ranks_options one = {.size = sizeof one, .alone = true};
    sifr_ranks *alone = NULL;
    sifr_loop *loop = NULL;
    if (!ranks) BASE_TRY(sifr_ranks_open(context, &one, &alone, error));
    if (alone) ranks = alone;
    sifr_status status = base_alloc(1, sizeof *loop, &loop, error);
    if (status == SIFR_OK) status = config_copy(config, &loop->config, error);
    status = sifr_ranks_agree(ranks, status, error);
    if (status == SIFR_OK) {
        loop->ranks = ranks;
        loop->alone = alone;
        status = prepare(context, loop, error);
        if (status == SIFR_OK) *out = loop;
        if (status != SIFR_OK) sifr_loop_close(loop);
        return status;
    }
    if (loop) config_free(&loop->config);
    free(loop);
    sifr_ranks_close(alone);
    return status;
}

void sifr_loop_close(sifr_loop *loop) {
    BASE_ENTER_VOID(loop);
    train_close(&loop->state);
    config_free(&loop->config);
    sifr_ranks_close(loop->alone);
    free(loop);
}

sifr_engine *sifr_loop_engine(sifr_loop *loop) {
    BASE_ENTER_OR(NULL, loop);
    return loop->state.engine;
}

void sifr_loop_get(const sifr_loop *loop, sifr_loop_figures *out) {
    BASE_ENTER_VOID(loop, out);
    const sifr_model *model = loop->state.folder.model;
    const sifr_settings *step = engine_settings(loop->state.engine);
    int32_t targets = model->inputs[SIFR_TARGETS];
    const sifr_loop_figures known = {.parameters = sifr_model_parameters(model),
                                     .trained_parameters = sifr_model_trained(model),
                                     .vocab_size = loop->state.folder.config.vocab_size,
                                     .micro_batch_size = step->micro_batch_size,
                                     .gradient_accumulation_steps =
                                         step->gradient_accumulation_steps,
                                     .seq_length = step->seq_length,
                                     .total_steps = loop->state.total_steps,
                                     .targets = targets < 0 ? 0 : model->values[targets].columns};
    api_give_result(&known, sizeof known, out);
}

int64_t sifr_loop_micro_batch(const sifr_loop *loop, int64_t index) {
    BASE_ENTER_OR(-1, loop);
    const plan_settings *s = &engine_schedule(loop->state.engine)->settings;
    if (index < 0 || index >= s->step.gradient_accumulation_steps) return -1;
    return plan_global_micro_batch(s, plan_mesh_place(&s->mesh, PLAN_DATA), (int32_t)index);
}

sifr_status sifr_loop_set_steps(sifr_loop *loop, int64_t total, sifr_error *error) {
    BASE_ENTER(error, loop);
    if (total < 1)
        return base_fail(error, SIFR_USAGE, "sifr_loop_set_steps: %lld steps; give 1 or more",
                         (long long)total);
    if (loop->counted && total != loop->state.total_steps)
        return base_fail(error, SIFR_USAGE,
                         "sifr_loop_set_steps: %lld, but the schedule is of %lld steps already "
                         "(max_steps, or an earlier call); open the loop without",
                         (long long)total, (long long)loop->state.total_steps);
    return set_steps(loop, total, error);
}

static sifr_status check_counted(const sifr_loop *loop, sifr_error *error) {
    if (loop->counted) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "the schedule does not know how many steps there are: set max_steps in the "
                     "config, or call sifr_loop_set_steps");
}

/* Updates before the next one, as schedules count them. */
static int64_t updates_before(const sifr_loop *loop) {
    return sifr_engine_updates(loop->state.engine) - 1;
}

sifr_status sifr_loop_rate(const sifr_loop *loop, double *out, sifr_error *error) {
    BASE_ENTER(error, loop, out);
    BASE_TRY(check_counted(loop, error));
    *out = config_lr_at(&loop->config.schedule, updates_before(loop));
    return SIFR_OK;
}

sifr_status sifr_loop_step(sifr_loop *loop, const sifr_batch *batch, sifr_step_result *result,
                           sifr_error *error) {
    BASE_ENTER(error, loop, batch, result);
    const sifr_config *c = &loop->config;
    int64_t before = updates_before(loop);
    double rate;
    BASE_TRY(sifr_loop_rate(loop, &rate, error));
    BASE_TRY(sifr_engine_set_betas(
        loop->state.engine, config_lr_beta1_at(&c->schedule, before, c->step.optimizer.beta1),
        config_lr_beta2_at(&c->schedule, c->step.optimizer.beta2), error));
    return sifr_engine_step(loop->state.engine, batch, rate, result, error);
}

/* On the first rank. */
static sifr_status begin_folder(train_state *t, const char *path, sifr_error *error) {
    char **names;
    size_t count;
    BASE_TRY(base_make_directories(path, error));
    BASE_TRY(base_list_directory(path, &names, &count, error));
    base_free_names(names, count);
    if (count)
        return base_fail(error, SIFR_USAGE, "%s: is not empty; give a new folder for the model",
                         path);
    BASE_TRY(checkpoint_base_check(&t->base, t->folder.model, error));
    return train_put_folder(t, path, error);
}

sifr_status sifr_loop_save_model(sifr_loop *loop, const char *path, sifr_error *error) {
    BASE_ENTER(error, loop, path);
    train_state *t = &loop->state;
    BASE_TRY(train_agree(t, engine_settle(t->engine, error), error));
    sifr_status begun = t->first ? begin_folder(t, path, error) : SIFR_OK;
    BASE_TRY(train_agree(t, begun, error));
    sifr_status saved = engine_save_folder(t->engine, t->folder.architecture, t->folder.weights,
                                           BASE_FP32, path, error);
    return train_agree(t, saved, error);
}
