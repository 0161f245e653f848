#include "engine/engine_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "base/inside.h"
#include "engine/check/device_choice.h"
#include "engine/state/convert.h"
#include "plan/pass/passes.h"
#include "plan/peers.h"
#include "plan/queries.h"
#include "plan/verify/verify.h"

/* What "auto" is without a search: `sifr train` makes one before. */
static void settle(sifr_settings *step) {
    if (step->step_order == SIFR_STEP_AUTO) step->step_order = SIFR_STEP_BATCH;
    if (step->recompute == SIFR_RECOMPUTE_AUTO && step->activation_memory == 0)
        step->recompute = SIFR_RECOMPUTE_UNIT;
}

plan_settings engine_plan_settings(const sifr_settings *step, const comm_group *group) {
    plan_settings settings = {.step = *step, .mode = PLAN_TRAIN};
    /* A size that does not divide the ranks is refused by engine_check_settings. */
    (void)!plan_mesh_of(step, group ? comm_size(group) : 1, group ? comm_rank(group) : 0,
                        &settings.mesh, NULL);
    if (group) plan_mesh_place_hosts(&settings.mesh, comm_ranks_per_host(group));
    settle(&settings.step);
    return settings;
}

static sifr_status open_swap(sifr_engine *engine, sifr_error *error) {
    const sifr_offload *o = &engine->settings.offload;
    const plan_schedule *s = engine->training;
    engine_io_settings io = {.block_bytes = o->aio.block_size,
                             .queue_depth = o->aio.queue_depth,
                             .threads = o->aio.intra_op_parallelism,
                             .single_submit = o->aio.single_submit,
                             .overlap_events = o->aio.overlap_events};
    bool staged = device_is_hidden(engine->dev);
    int32_t transfers = engine_transfers(s, PLAN_DISK);
    int64_t staging[2];
    if (!s->nvme_bytes) return SIFR_OK;
    base_assert(o->nvme_path); /* engine_check_settings wants it */
    BASE_TRY(engine_swap_open(o->nvme_path, plan_mesh_place(&s->settings.mesh, PLAN_WORLD),
                              s->nvme_bytes, &io, staged ? ENGINE_STAGED * transfers : transfers,
                              &engine->swap, error));
    plan_staging(s, staging);
    if (staged) BASE_TRY(engine_swap_stage(engine->swap, engine->dev, staging, transfers, error));
    engine_use_swap(engine->trainer, engine->swap);
    return engine_pin(engine->trainer, o->optimizer.pin_memory, o->param.pin_memory,
                      &engine->pinned, error);
}

static sifr_status open_pieces(sifr_engine *engine, sifr_error *error) {
    int64_t bytes = plan_piece_bytes(engine->training);
    return bytes ? engine_pieces_open(engine->dev, bytes, &engine->pieces, error) : SIFR_OK;
}

static sifr_status check_types(const sifr_settings *o, sifr_error *error) {
    if (o->grad_accum_dtype != SIFR_FP32 && o->grad_accum_dtype != o->precision)
        return base_fail(error, SIFR_USAGE,
                         "gradients: sums are kept in fp32 or in the training type itself");
    bool narrow = o->bf16_master_weights || o->bf16_optimizer_states;
    if (!narrow || o->precision == SIFR_BF16) return SIFR_OK;
    return base_fail(
        error, SIFR_USAGE,
        "bf16_master_weights, bf16_optimizer_states: optimizer state is kept in fp32, or "
        "in bf16 where that is the training type");
}

/* The first rank looks at the lists of all stages: they finish together, or no step begins. */
static sifr_status check_stages(const sifr_engine *engine, const plan_settings *settings,
                                sifr_error *error) {
    int32_t stages = plan_mesh_ranks(&settings->mesh, PLAN_STAGES);
    if (stages == 1 || comm_rank(engine->group) > 0) return SIFR_OK;
    return plan_check_stages(engine->model, engine->dev, settings, error);
}

/* Both answers of a pair are in one micro batch. */
static sifr_status check_pairs(const sifr_engine *engine, sifr_error *error) {
    const model_objective_row *row = engine->model->objective.row;
    int64_t sequences = engine->settings.micro_batch_size;
    if (!row || !row->pairs || sequences % 2 == 0) return SIFR_OK;
    return base_fail(
        error, SIFR_USAGE,
        "micro_batch_size: %lld, but two sequences, the chosen answer and the rejected "
        "one, make a loss of %s; give an even number",
        (long long)sequences, row->call);
}

/* A function of the caller's reads and writes what lies in the host's memory. */
static sifr_status check_calls(const sifr_engine *engine, sifr_error *error) {
    const model_objective *objective = &engine->model->objective;
    if (!objective->row || !objective->row->calls) return SIFR_OK;
    if (device_is_hidden(engine->dev))
        return base_fail(error, SIFR_USAGE,
                         "device: %s computes on the CPU alone; set device to \"cpu\", or leave it "
                         "out",
                         objective->row->call);
    if (objective->own.loss) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: the loss is a function of a program's, and none was given: call "
                     "sifr_config_set_loss, or give loss= in Python; a config alone "
                     "can only be planned",
                     objective->row->name);
}

static sifr_status check_tensors(const sifr_engine *engine, const plan_settings *settings,
                                 sifr_error *error) {
    int32_t tensors = plan_mesh_ranks(&settings->mesh, PLAN_TENSORS);
    if (tensors == 1) return SIFR_OK;
    return plan_mesh_check_hosts(&settings->mesh, comm_local_size(engine->group), error);
}

/* The plan, and whether all ranks of this host have room for theirs. */
static sifr_status make_plan(sifr_engine *engine, sifr_error *error) {
    plan_settings settings = engine_plan_settings(&engine->settings, engine->group);
    BASE_TRY(check_pairs(engine, error));
    BASE_TRY(check_calls(engine, error));
    BASE_TRY(check_tensors(engine, &settings, error));
    BASE_TRY(plan_lower(engine->model, engine->dev, &settings, &engine->training, error));
    engine->model = engine->training->model; /* a tensor rank's part of it */
    BASE_TRY(check_stages(engine, &settings, error));
    return engine_check_memory(engine->training, comm_local_size(engine->group), error);
}

static bool is_on_disk(const sifr_offload *o) {
    return o->optimizer.device == SIFR_TIER_NVME || o->param.device == SIFR_TIER_NVME ||
           o->gradients == SIFR_TIER_NVME || o->activations == SIFR_TIER_NVME;
}

/* What the optimizer does not have cannot be asked for. */
static sifr_status check_optimizer(const sifr_settings *o, sifr_error *error) {
    const optim_row *row = optim_row_of(&o->optimizer);
    bool masters = plan_has_masters(&(plan_settings){.step = *o});
    bool state = (masters && o->offload.optimizer.state != SIFR_STATE_MOMENTS) ||
                 (optim_states(row) && o->offload.optimizer.state != SIFR_STATE_MASTER_WEIGHTS);
    if (row->averages && o->bf16_master_weights)
        return base_fail(error, SIFR_USAGE,
                         "bf16_master_weights: %s keeps its averaged weights in fp32; leave it out",
                         row->name);
    if (o->optimizer.ema_decay > 0 && !row->ema)
        return base_fail(error, SIFR_USAGE,
                         "ema_decay: an average of the weights beside %s is not supported yet; "
                         "leave it out",
                         row->name);
    if (o->bf16_optimizer_states && row->states[0].type && !row->ema)
        return base_fail(error, SIFR_USAGE,
                         "bf16_optimizer_states: %s keeps its states in types of its own; leave it "
                         "out",
                         row->name);
    if (o->offload.optimizer.device != SIFR_TIER_NVME || state) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "offload_optimizer: %s with these types keeps no state that could be there; "
                     "leave it out",
                     row->name);
}

sifr_status engine_check_settings(const sifr_settings *o, int32_t ranks, int32_t rank,
                                  sifr_error *error) {
    plan_mesh mesh;
    BASE_TRY(sifr_settings_check(o, error));
    BASE_TRY(plan_mesh_of(o, ranks, rank, &mesh, error));
    BASE_TRY(check_types(o, error));
    BASE_TRY(check_optimizer(o, error));
    bool parameters = o->offload.param.device == SIFR_TIER_NVME;
    if (is_on_disk(&o->offload) && !o->offload.nvme_path)
        return base_fail(error, SIFR_USAGE, "offload: nvme_path: no directory is given");
    if (parameters && o->zero.stage < 3)
        return base_fail(error, SIFR_USAGE, "offload: parameters are on disk at ZeRO stage 3 only");
    if (o->number_checkpoints > 0 && o->recompute == SIFR_RECOMPUTE_AUTO)
        return base_fail(error, SIFR_USAGE,
                         "checkpoints: a count of units' inputs, without activation_memory");
    return SIFR_OK;
}

/* No rank takes anything before all have seen what there is. */
static sifr_status check_capacity(sifr_engine *engine, engine_lack *lack, sifr_error *error) {
    const char *path = engine->settings.offload.nvme_path;
    *lack = ENGINE_LACK_MEMORY;
    sifr_status status = make_plan(engine, error);
    if (status == SIFR_OK)
        status = plan_mesh_check_near(&engine->training->settings.mesh,
                                      (int32_t)comm_local_size(engine->group), error);
    BASE_TRY(comm_agree_status(engine->group, status, error));
    if (!path) return SIFR_OK;
    *lack = ENGINE_LACK_DISK;
    BASE_TRY(engine_check_disk(engine->group, path, engine->training->nvme_bytes, &engine->cleaned,
                               error));
    *lack = ENGINE_LACK_MEMORY; /* for what comes next */
    return SIFR_OK;
}

/* The engine takes over `dev`, also where this fails. */
static sifr_status plan_on(device *dev, const sifr_model *model, const sifr_settings *settings,
                           comm_group *group, engine_lack *lack, sifr_engine **out,
                           sifr_error *error) {
    sifr_engine *engine;
    sifr_status status = base_alloc(1, sizeof *engine, &engine, error);
    if (status != SIFR_OK) {
        device_close(dev);
        return status;
    }
    engine->dev = dev;
    engine->model = model;
    engine->settings = *settings;
    engine->group = group;
    engine->scaler.scale = 1.0;
    if (settings->precision == SIFR_FP16)
        engine->scaler = engine_loss_scaler_begin(&settings->fp16);
    BASE_TRY_GOTO(status, check_capacity(engine, lack, error), fail);
    BASE_TRY_GOTO(status, engine_open_given(engine, error), fail);
    *out = engine;
    return SIFR_OK;
fail:
    sifr_engine_free(engine);
    return status;
}

static sifr_status plan_here(const sifr_model *model, const sifr_settings *settings,
                             comm_group *group, engine_lack *lack, sifr_engine **out,
                             sifr_error *error) {
    device *dev;
    BASE_TRY(engine_check_settings(settings, comm_size(group), comm_rank(group), error));
    BASE_TRY(engine_open_device(settings, group, &dev, error));
    return plan_on(dev, model, settings, group, lack, out, error);
}

sifr_status engine_plan(const sifr_model *model, const sifr_settings *settings, comm_group *group,
                        sifr_engine **out, sifr_error *error) {
    engine_lack lack = ENGINE_LACK_MEMORY; /* callers advise for themselves */
    return plan_here(model, settings, group, &lack, out, error);
}

static sifr_status use_device(sifr_engine *engine, sifr_error *error) {
    if (!device_is_hidden(engine->dev)) return SIFR_OK;
    comm_operands operands = engine_operands(engine->training);
    operands.sends = 0;
    if (engine_groups_at(&engine->groups, PLAN_STAGES)) operands.largest = 0; /* they have others */
    return comm_use_device(engine->group, engine->dev, &operands, error);
}

sifr_status engine_take(sifr_engine *engine, sifr_error *error) {
    base_assert(!engine->trainer); /* once */
    const plan_settings *settings = &engine->training->settings;
    BASE_TRY(engine_groups_open(engine->group, &settings->mesh,
                                plan_has_second_line(&settings->pipeline), &engine->groups, error));
    BASE_TRY(use_device(engine, error));
    BASE_TRY(
        engine_executor_create(engine->training, &engine->groups, NULL, &engine->trainer, error));
    engine_clear_compressed(engine);
    BASE_TRY(open_swap(engine, error));
    BASE_TRY(open_pieces(engine, error));
    engine->settings.offload.nvme_path = NULL; /* the caller's */
    return SIFR_OK;
}

static sifr_status take_or_free(sifr_engine *engine, sifr_engine **out, sifr_error *error) {
    sifr_status status = engine_take(engine, error);
    if (status == SIFR_OK)
        *out = engine;
    else
        sifr_engine_free(engine);
    return status;
}

sifr_status engine_create(const sifr_model *model, const sifr_settings *settings, comm_group *group,
                          sifr_engine **out, sifr_error *error) {
    sifr_engine *engine;
    BASE_TRY(engine_plan(model, settings, group, &engine, error));
    return take_or_free(engine, out, error);
}

sifr_status engine_create_on(device *dev, const sifr_model *model, const sifr_settings *settings,
                             comm_group *group, sifr_engine **out, sifr_error *error) {
    sifr_engine *engine;
    engine_lack lack = ENGINE_LACK_MEMORY;
    sifr_status status = engine_check_settings(settings, comm_size(group), comm_rank(group), error);
    if (status != SIFR_OK) {
        device_close(dev);
        return status;
    }
    BASE_TRY(plan_on(dev, model, settings, group, &lack, &engine, error));
    return take_or_free(engine, out, error);
}

sifr_status sifr_engine_create(const sifr_model *model, const sifr_settings *settings,
                               sifr_engine **out, sifr_error *error) {
    BASE_ENTER(error, model, settings, out);
    comm_group *group;
    sifr_engine *engine;
    engine_lack lack = ENGINE_LACK_MEMORY;
    BASE_TRY(comm_open_self(&group, error));
    sifr_status status = plan_here(model, settings, group, &lack, &engine, error);
    if (status == SIFR_OK) status = take_or_free(engine, out, error);
    if (status == SIFR_OK) {
        (*out)->own_group = group;
        return SIFR_OK;
    }
    comm_close(group);
    return engine_advise(PLAN_TRAIN, lack, status, error);
}

void sifr_engine_free(sifr_engine *engine) {
    BASE_ENTER_VOID(engine);
    engine_swap_close(engine->swap); /* before the memory that it may still be moving */
    engine_pieces_close(engine->pieces);
    engine_executor_free(engine->logits_evaluator.executor);
    engine_executor_free(engine->evaluator.executor);
    engine_executor_free(engine->trainer);
    if (device_is_hidden(engine->dev)) {
        (void)!engine_groups_follow(&engine->groups, NULL, NULL, NULL);
        (void)!comm_use_device(engine->group, NULL, NULL, NULL);
    }
    engine_groups_close(&engine->groups);
    plan_free(engine->logits_evaluator.schedule);
    plan_free(engine->evaluator.schedule);
    plan_free(engine->training);
    comm_close(engine->own_group);
    device_close(engine->dev);
    free(engine->written);
    free(engine);
}

sifr_status engine_heed_calls(const sifr_engine *engine, sifr_error *error) {
    const model_objective_row *row = engine->model->objective.row;
    sifr_error own = {.status = SIFR_OK};
    if (!row || !row->calls) return SIFR_OK;
    sifr_status status = device_take_failure(engine->dev, &own);
    status = comm_agree_status(engine->group, status, &own);
    return status == SIFR_OK ? SIFR_OK : base_fail(error, status, "%s", own.message);
}

/* A step without labels says nothing about the scale. */
static sifr_status update_loss_scale(sifr_engine *engine, const engine_result *result,
                                     sifr_error *error) {
    const sifr_fp16 *scaling = &engine->settings.fp16;
    if (engine->settings.precision != SIFR_FP16 || result->labelled == 0) return SIFR_OK;
    if (engine_loss_scaler_update(&engine->scaler, scaling, !result->updated)) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "step %lld: a gradient overflows fp16 at loss scale %g, the least allowed "
                     "(min_loss_scale): the run cannot go on; lower the learning rate, or train in "
                     "bf16 or fp32",
                     (long long)engine->steps, engine->scaler.scale);
}

/* It would make every weight NaN. */
static sifr_status check_rate(double rate, sifr_error *error) {
    if (isfinite((float)rate)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "learning_rate: %g is not a finite number%s; give each step a rate that is, "
                     "such as 1e-4",
                     rate, isfinite(rate) ? " of fp32" : "");
}

/* What this rank can see by itself. */
static sifr_status take_batch(sifr_engine *engine, const sifr_batch *batch, double rate,
                              sifr_error *error) {
    const sifr_settings *step = &engine->settings;
    int64_t count = step->gradient_accumulation_steps * step->micro_batch_size * step->seq_length;
    BASE_TRY(check_rate(rate, error));
    BASE_TRY(engine_check_batch(engine->model, batch, count, step->seq_length, error));
    return engine_put_batch(engine->trainer, engine->training, batch, error);
}

/* batch NULL: this rank has none, since it failed with `own`. */
static sifr_status step(sifr_engine *engine, const sifr_batch *batch, double learning_rate,
                        sifr_status own, sifr_step_result *result, sifr_error *error) {
    const plan_schedule *s = engine->training;
    int64_t count = s->settings.step.gradient_accumulation_steps *
                    s->settings.step.micro_batch_size * s->settings.step.seq_length;
    optim_memory memory = engine->memory;
    if (engine->shows_average) BASE_TRY(engine_refresh(engine, error));
    double rate = own == SIFR_OK ? learning_rate : 0;
    const engine_given given = engine_given_step(engine, rate);
    engine_step_input input = {.seed = engine->settings.seed,
                               .step = engine->steps,
                               .updates = engine->updates,
                               .learning_rate = rate,
                               .optimizer = &engine->settings.optimizer,
                               .memory = &memory,
                               .gradient_clipping = engine->settings.gradient_clipping,
                               .loss_scale = engine->scaler.scale,
                               .refused = own != SIFR_OK,
                               .given = engine_given_hash(&given)};
    if (own == SIFR_OK)
        input.labelled =
            engine_count_losses(engine->model, batch, count, engine->settings.seq_length);
    engine_result out;
    BASE_TRY(engine_run(engine->trainer, &input, &out, error));
    if (out.refused) return comm_agree_status(engine->group, own, error);
    if (out.differs) return engine_tell_apart(engine, &given, error);
    BASE_TRY(engine_heed_calls(engine, error)); /* where one failed the loss is NaN */
    engine->steps++;
    engine->updates += out.updated;
    if (out.updated) engine->memory = memory;
    const double *losses = engine_micro_losses(engine->trainer);
    *result = (sifr_step_result){.loss = out.labelled ? out.loss_sum / (double)out.labelled : 0,
                                 .labelled = out.labelled,
                                 .gradient_norm = out.gradient_norm,
                                 .loss_scale = input.loss_scale,
                                 .updated = out.updated,
                                 .micro_losses = losses,
                                 .micro_batches =
                                     losses ? s->settings.step.gradient_accumulation_steps : 0};
    return update_loss_scale(engine, &out, error);
}

sifr_status sifr_engine_step(sifr_engine *engine, const sifr_batch *batch, double learning_rate,
                             sifr_step_result *result, sifr_error *error) {
    BASE_ENTER(error, engine, batch, result);
    BASE_TRY(engine_check_idle(engine, error));
    sifr_error own, *said = error ? error : &own;
    sifr_status status = take_batch(engine, batch, learning_rate, said);
    if (status != SIFR_OK && comm_size(engine->group) == 1) return status;
    engine->running = true;
    status = step(engine, batch, learning_rate, status, result, said);
    engine->running = false;
    return status;
}

sifr_status engine_fail_step(sifr_engine *engine, sifr_error *error) {
    sifr_step_result none;
    return step(engine, NULL, 0, error->status, &none, error);
}

sifr_status sifr_engine_set_betas(sifr_engine *engine, double beta1, double beta2,
                                  sifr_error *error) {
    BASE_ENTER(error, engine);
    sifr_settings next = engine->settings;
    next.optimizer.beta1 = beta1;
    next.optimizer.beta2 = beta2;
    next.optimizer.groups = NULL; /* the caller's, and perhaps gone */
    next.optimizer.group_count = 0;
    BASE_TRY(sifr_settings_check(&next, error));
    if (engine_optimizer(engine)->averages && beta1 != engine->settings.optimizer.beta1)
        return base_fail(error, SIFR_USAGE,
                         "beta1 %g: that of %s is %g in all steps, since the weights in training "
                         "follow from it",
                         beta1, engine_optimizer(engine)->name, engine->settings.optimizer.beta1);
    engine->settings.optimizer.beta1 = beta1;
    engine->settings.optimizer.beta2 = beta2;
    return SIFR_OK;
}

int64_t sifr_engine_steps(const sifr_engine *engine) {
    BASE_ENTER_OR(0, engine);
    return engine->steps;
}

int64_t sifr_engine_updates(const sifr_engine *engine) {
    BASE_ENTER_OR(0, engine);
    return engine->updates;
}

double sifr_engine_loss_scale(const sifr_engine *engine) {
    BASE_ENTER_OR(0, engine);
    return engine->scaler.scale;
}

int64_t sifr_engine_planned_bytes(const sifr_engine *engine) {
    BASE_ENTER_OR(0, engine);
    return engine->training->total_bytes + plan_host_bytes(engine->training);
}
