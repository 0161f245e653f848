#include "train/evaluate/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/heap.h"
#include "engine/handle.h"
#include "infer/evaluator.h"
#include "train/evaluate/predictions.h"
#include "train/evaluate/rewards.h"

typedef struct evaluation {
    sifr_engine *engine;
    const data_set *data;
    int64_t length;
    data_rows rows;
    infer_evaluator pass;
    train_predictions predictions;
    float *rewards, *log_probabilities; /* of pairs: of all windows; of a micro batch */
    int (*stopped)(void *user);
    void *user;
} evaluation;

static sifr_status run_batch(void *engine, const sifr_batch *batch, float *logits, double *loss,
                             int64_t *labelled, sifr_error *error) {
    return logits ? engine_evaluate_logits(engine, batch, loss, labelled, logits, error)
                  : sifr_engine_evaluate(engine, batch, loss, labelled, error);
}

static int ask(void *user) {
    const evaluation *e = user;
    return e->stopped ? e->stopped(e->user) : 0;
}

/* The numbers of preferences are rewards. */
static sifr_status take_rewards(void *user, const infer_batch *batch, float *out,
                                sifr_error *error) {
    const evaluation *e = user;
    BASE_TRY(engine_read_log_probabilities(e->engine, true, 0, e->log_probabilities, error));
    train_rewards_take(engine_model(e->engine), batch->rows, 0, batch->rows->count,
                       e->log_probabilities, out);
    return SIFR_OK;
}

static void put_rewards(void *user, int64_t first, int64_t count, const float *numbers) {
    const evaluation *e = user;
    memcpy(e->rewards + first, numbers, (size_t)count * sizeof *numbers);
}

static void score_rewards(const evaluation *e, train_scores *out) {
    train_rewards means = train_rewards_mean(e->rewards, e->pass.count / 2);
    out->count = TRAIN_REWARDS;
    for (int i = 0; i < TRAIN_REWARDS; i++)
        out->items[i] = (train_score){train_reward_names[i], means.values[i]};
}

static sifr_status prepare_rewards(evaluation *e, sifr_error *error) {
    size_t tokens = (size_t)(e->rows.count * e->length);
    e->pass.numbers =
        (infer_row_numbers){.width = 1, .user = e, .take = take_rewards, .put = put_rewards};
    BASE_TRY(base_alloc((size_t)e->pass.count, sizeof *e->rewards, &e->rewards, error));
    return base_alloc(tokens, sizeof *e->log_probabilities, &e->log_probabilities, error);
}

static sifr_status prepare_predictions(evaluation *e, sifr_error *error) {
    BASE_TRY(train_predictions_open(e->data, engine_words(engine_model(e->engine)), e->rows.count,
                                    e->length, e->pass.count, &e->predictions, error));
    train_predictions_watch(&e->predictions, &e->pass);
    return SIFR_OK;
}

static sifr_status prepare(evaluation *e, bool paired, int64_t sequences, int64_t windows,
                           sifr_error *error) {
    const plan_mesh *mesh = &engine_schedule(e->engine)->settings.mesh;
    BASE_TRY(data_set_rows(e->data, sequences, e->length, &e->rows, error));
    infer_evaluator_windows(&e->pass, e->data, &e->rows, windows);
    e->pass.run = run_batch;
    e->pass.model = e->engine;
    e->pass.group = engine_group(e->engine);
    e->pass.ranks = plan_mesh_ranks(mesh, PLAN_DATA);
    e->pass.place = plan_mesh_place(mesh, PLAN_DATA);
    e->pass.user = e;
    e->pass.stopped = ask;
    if (paired)
        BASE_TRY(prepare_rewards(e, error));
    else if (data_set_labelled(e->data))
        BASE_TRY(prepare_predictions(e, error));
    return infer_evaluator_open(&e->pass, error);
}

static void free_evaluation(evaluation *e) {
    infer_evaluator_close(&e->pass);
    train_predictions_close(&e->predictions);
    data_rows_free(&e->rows);
    free(e->rewards);
    free(e->log_probabilities);
}

sifr_status train_evaluate(sifr_engine *engine, const data_set *data, int64_t sequences,
                           int64_t length, int64_t max_windows, int (*stopped)(void *user),
                           void *user, train_evaluation *out, int *signal, sifr_error *error) {
    evaluation e = {
        .engine = engine, .data = data, .length = length, .stopped = stopped, .user = user};
    double start = base_seconds();
    const model_objective_row *objective = engine_model(engine)->objective.row;
    bool paired = objective && objective->pairs;
    int64_t windows = data_set_windows(data, length);
    infer_sums sums;
    sifr_status status;
    *out = (train_evaluation){.paired = paired};
    *signal = 0;
    if (max_windows > 0) windows = base_min_i64(windows, max_windows);
    if (paired && windows > 1) windows -= windows % 2;
    if (windows == 0)
        return base_fail(error, SIFR_FAILED,
                         "evaluation data: %lld tokens are too few for a window of %lld and the "
                         "token after it; give more text or a shorter seq-length",
                         (long long)data_set_tokens(data), (long long)length);
    status = prepare(&e, paired, sequences, windows, error);
    BASE_TRY_GOTO(status, comm_agree_status(engine_group(engine), status, error), done);
    BASE_TRY_GOTO(status, infer_evaluator_run(&e.pass, &sums, signal, error), done);
    out->windows = sums.rows;
    out->tokens = sums.labelled;
    out->loss = sums.labelled ? sums.loss / (double)sums.labelled : 0;
    out->perplexity = exp(out->loss);
    out->labelled = e.pass.numbers.width > 0;
    if (paired && !*signal) {
        score_rewards(&e, &out->scores);
    } else if (e.pass.numbers.width && !*signal) {
        status = train_predictions_score(&e.predictions, &out->scores, error);
        BASE_TRY_GOTO(status, comm_agree_status(engine_group(engine), status, error), done);
    }
    out->seconds = base_seconds() - start;
done:
    free_evaluation(&e);
    return status;
}
