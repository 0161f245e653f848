/* Evaluation by a training engine: losses of a micro batch, and logits where they are asked for. */
#include <stdlib.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "base/inside.h"
#include "engine/engine_private.h"
#include "engine/state/convert.h"
#include "plan/peers.h"
#include "plan/queries.h"

int64_t engine_words(const sifr_model *model) {
    base_assert(model->nodes[model->node_count - 1].w[0] >= 0); /* the head */
    return model->weights[model->nodes[model->node_count - 1].w[0]].rows;
}

sifr_status engine_get_logits(const engine_executor *executor, const plan_schedule *s,
                              engine_pieces *pieces, int64_t rows, float *out, sifr_error *error) {
    base_assert(s->logits >= 0);
    enum { PIECE = 1024 };
    float piece[PIECE]; /* as large as any type */
    base_dtype dtype = plan_dtype(&s->settings);
    int64_t count = rows * engine_words(s->model), size = base_dtype_bytes(dtype);
    engine_widened wide = {out, dtype};
    if (pieces)
        return engine_pieces_read(pieces, engine_buffer(executor, s->logits), count * size,
                                  engine_take_widened, &wide, error);
    for (int64_t at = 0; at < count; at += PIECE) {
        int64_t some = base_min_i64(PIECE, count - at);
        BASE_TRY(engine_get(executor, s->logits, at * size, piece, some * size, error));
        engine_to_fp32(out + at, piece, dtype, some);
    }
    return SIFR_OK;
}

/* Whether a run of the schedule exchanges something; else each rank evaluates by itself. */
static bool meets_others(const plan_schedule *s) {
    for (size_t i = 0; i < s->instruction_count; i++)
        if (plan_is_collective(&s->instructions[i]) || plan_is_peer(&s->instructions[i]))
            return true;
    return false;
}

/* What one rank fails in by itself before all run ends the evaluation on all. */
static sifr_status heed_ranks(const sifr_engine *engine, const plan_schedule *schedule, bool logits,
                              sifr_status own, sifr_error *error) {
    bool together = comm_size(engine->group) > 1 && meets_others(schedule);
    const engine_given given = engine_given_evaluation(logits);
    return together ? engine_agree(engine, &given, own, error) : own;
}

static sifr_status make(sifr_engine *engine, bool logits, engine_evaluator *out,
                        sifr_error *error) {
    if (out->executor) return SIFR_OK;
    plan_settings settings = plan_evaluation_of(&engine->training->settings, logits);
    if (!out->schedule)
        BASE_TRY(plan_lower(engine->model, engine->dev, &settings, &out->schedule, error));
    /* stages tell each other what memory they lack, which must not meet another call */
    BASE_TRY(heed_ranks(engine, out->schedule, logits, SIFR_OK, error));
    BASE_TRY(engine_executor_create(out->schedule, &engine->groups, engine->trainer, &out->executor,
                                    error));
    if (engine->swap) engine_use_swap(out->executor, engine->swap);
    return engine_open_window(engine->trainer,
                              error); /* before the first step it has the weights */
}

/* What the last stage of a pipeline has come to. */
static sifr_status tell_stages(const sifr_engine *engine, void *data, int64_t bytes,
                               sifr_error *error) {
    comm_group *stages = engine_groups_at(&engine->groups, PLAN_STAGES);
    return stages ? comm_broadcast(stages, comm_size(stages) - 1, data, bytes, error) : SIFR_OK;
}

/* Each context rank has the losses of its tokens: adds them up, in their order. */
static sifr_status join_contexts(const sifr_engine *engine, double *loss_sum, sifr_error *error) {
    comm_group *contexts = engine_groups_at(&engine->groups, PLAN_CONTEXTS);
    double *all, sum = 0;
    if (!contexts) return SIFR_OK;
    int32_t ranks = comm_size(contexts);
    BASE_TRY(base_alloc((size_t)ranks, sizeof *all, &all, error));
    sifr_status status = comm_all_gather_control(contexts, loss_sum, sizeof *loss_sum, all, error);
    for (int32_t r = 0; r < ranks && status == SIFR_OK; r++) sum += all[r];
    if (status == SIFR_OK) *loss_sum = sum;
    free(all);
    return status;
}

static sifr_status take_batch(const engine_evaluator *evaluator, const sifr_batch *batch,
                              int64_t count, sifr_error *error) {
    const plan_schedule *s = evaluator->schedule;
    BASE_TRY(engine_check_batch(s->model, batch, count, s->settings.step.seq_length, error));
    return engine_put_batch(evaluator->executor, s, batch, error);
}

static sifr_status evaluate(const sifr_engine *engine, const engine_evaluator *evaluator,
                            const sifr_batch *batch, double *loss_sum, int64_t *labelled,
                            sifr_error *error) {
    const plan_schedule *s = evaluator->schedule;
    int64_t count = s->settings.step.micro_batch_size * s->settings.step.seq_length;
    sifr_status taken = take_batch(evaluator, batch, count, error);
    bool logits = evaluator == &engine->logits_evaluator;
    BASE_TRY(heed_ranks(engine, s, logits, taken, error));
    engine_step_input input = {
        .labelled = engine_count_losses(s->model, batch, count, s->settings.step.seq_length)};
    engine_result out;
    BASE_TRY(engine_run(evaluator->executor, &input, &out, error));
    BASE_TRY(engine_heed_calls(engine, error));
    *loss_sum = out.loss_sum;
    *labelled = out.labelled;
    BASE_TRY(join_contexts(engine, loss_sum, error));
    return tell_stages(engine, loss_sum, sizeof *loss_sum, error);
}

static sifr_status run(sifr_engine *engine, const engine_evaluator *evaluator,
                       const sifr_batch *batch, double *loss_sum, int64_t *labelled,
                       sifr_error *error) {
    engine->running = true;
    sifr_status status = evaluate(engine, evaluator, batch, loss_sum, labelled, error);
    engine->running = false;
    return status;
}

/* All that comes before the batch. */
static sifr_status prepare(sifr_engine *engine, bool logits, engine_evaluator *evaluator,
                           sifr_error *error) {
    BASE_TRY(engine_settle(engine, error));
    BASE_TRY(engine_show_average(engine, error));
    return make(engine, logits, evaluator, error);
}

sifr_status engine_fail_evaluation(sifr_engine *engine, bool logits, sifr_error *error) {
    engine_evaluator *evaluator = logits ? &engine->logits_evaluator : &engine->evaluator;
    const sifr_error own = *error;
    BASE_TRY(prepare(engine, logits, evaluator, error));
    *error = own;
    return heed_ranks(engine, evaluator->schedule, logits, own.status, error);
}

sifr_status sifr_engine_evaluate(sifr_engine *engine, const sifr_batch *batch, double *loss_sum,
                                 int64_t *labelled, sifr_error *error) {
    BASE_ENTER(error, engine, batch, loss_sum, labelled);
    BASE_TRY(prepare(engine, false, &engine->evaluator, error));
    return run(engine, &engine->evaluator, batch, loss_sum, labelled, error);
}

sifr_status engine_evaluate_logits(sifr_engine *engine, const sifr_batch *batch, double *loss_sum,
                                   int64_t *labelled, float *logits, sifr_error *error) {
    engine_evaluator *evaluator = &engine->logits_evaluator;
    BASE_TRY(prepare(engine, true, evaluator, error));
    BASE_TRY(run(engine, evaluator, batch, loss_sum, labelled, error));
    int64_t rows = engine->settings.micro_batch_size * engine->settings.seq_length;
    int64_t bytes = rows * engine_words(engine->model) * (int64_t)sizeof *logits;
    if (evaluator->schedule->logits >= 0) /* of the last stage */
        BASE_TRY(engine_get_logits(evaluator->executor, evaluator->schedule, engine->pieces, rows,
                                   logits, error));
    return tell_stages(engine, logits, bytes, error);
}

int64_t sifr_engine_logits(const sifr_engine *engine) {
    BASE_ENTER_OR(0, engine);
    return engine_words(engine->model);
}

sifr_status sifr_engine_evaluate_logits(sifr_engine *engine, const sifr_batch *batch, float *logits,
                                        size_t count, double *loss_sum, int64_t *labelled,
                                        sifr_error *error) {
    BASE_ENTER(error, engine, batch, logits, loss_sum, labelled);
    int64_t rows = engine->settings.micro_batch_size * engine->settings.seq_length, wanted;
    if (!base_mul_i64(rows, engine_words(engine->model), &wanted) || (size_t)wanted != count)
        return base_fail(
            error, SIFR_USAGE,
            "sifr_engine_evaluate_logits: a capacity of %zu logits; a micro batch has %lld "
            "tokens with %lld each",
            count, (long long)rows, (long long)engine_words(engine->model));
    return engine_evaluate_logits(engine, batch, loss_sum, labelled, logits, error);
}

sifr_status engine_read_log_probabilities(const sifr_engine *engine, bool evaluation,
                                          int32_t micro_batch, float *out, sifr_error *error) {
    const plan_schedule *s = evaluation ? engine->evaluator.schedule : engine->training;
    const engine_executor *executor = evaluation ? engine->evaluator.executor : engine->trainer;
    base_assert(micro_batch >= 0 && micro_batch < s->settings.step.gradient_accumulation_steps);
    int64_t bytes =
        s->settings.step.micro_batch_size * s->settings.step.seq_length * (int64_t)sizeof *out;
    BASE_TRY(engine_get(executor, s->losses[micro_batch], bytes, out, bytes, error));
    return tell_stages(engine, out, bytes, error);
}
