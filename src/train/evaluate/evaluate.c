#include "train/evaluate/evaluate.h"

#include <math.h>

#include "base/checked.h"
#include "base/clock.h"
#include "engine/handle.h"
#include "infer/evaluator.h"

typedef struct evaluation {
    train_measured of;
    const train_measure *measure; /* NULL: the loss alone */
    void *measured;
    data_rows rows;
    infer_evaluator pass;
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

static sifr_status prepare(evaluation *e, sifr_error *error) {
    train_measured *of = &e->of;
    const plan_mesh *mesh = &engine_schedule(of->engine)->settings.mesh;
    BASE_TRY(data_set_rows(of->data, of->sequences, of->length, &e->rows, error));
    infer_evaluator_windows(&e->pass, of->data, &e->rows, of->windows);
    e->pass.run = run_batch;
    e->pass.model = of->engine;
    e->pass.group = engine_group(of->engine);
    e->pass.ranks = plan_mesh_ranks(mesh, PLAN_DATA);
    e->pass.place = plan_mesh_place(mesh, PLAN_DATA);
    e->pass.apart = plan_mesh_ranks(mesh, PLAN_TENSORS) * plan_mesh_ranks(mesh, PLAN_CONTEXTS);
    e->pass.user = e;
    e->pass.stopped = ask;
    if (e->measure) BASE_TRY(e->measure->open(of, &e->pass, &e->measured, error));
    return infer_evaluator_open(&e->pass, error);
}

static void free_evaluation(evaluation *e) {
    infer_evaluator_close(&e->pass);
    if (e->measure) e->measure->close(e->measured);
    data_rows_free(&e->rows);
}

/* An engine that a caller made itself may not compare pairs. */
static const train_measure *fitting(const train_measure *measure, const sifr_engine *engine) {
    const model_objective_row *objective = engine_model(engine)->objective.row;
    return measure && measure->pairs && !(objective && objective->pairs) ? NULL : measure;
}

sifr_status train_evaluate(sifr_engine *engine, const data_set *data, const train_measure *measure,
                           int64_t sequences, int64_t length, int64_t max_windows,
                           int (*stopped)(void *user), void *user, train_evaluation *out,
                           int *signal, sifr_error *error) {
    measure = fitting(measure, engine);
    evaluation e = {.of = {engine, data, sequences, length, data_set_windows(data, length)},
                    .measure = measure,
                    .stopped = stopped,
                    .user = user};
    double start = base_seconds();
    int64_t *windows = &e.of.windows;
    infer_sums sums;
    sifr_status status;
    *out = (train_evaluation){.labelled = measure != NULL, .paired = measure && measure->pairs};
    *signal = 0;
    if (max_windows > 0) *windows = base_min_i64(*windows, max_windows);
    if (out->paired && *windows > 1) *windows -= *windows % 2;
    if (*windows == 0)
        return base_fail(error, SIFR_FAILED,
                         "evaluation data: %lld tokens are too few for a window of %lld and the "
                         "token after it; give more text or a shorter seq-length",
                         (long long)data_set_tokens(data), (long long)length);
    status = prepare(&e, error);
    BASE_TRY_GOTO(status, comm_agree_status(engine_group(engine), status, error), done);
    BASE_TRY_GOTO(status, infer_evaluator_run(&e.pass, &sums, signal, error), done);
    out->windows = sums.rows;
    out->tokens = sums.labelled;
    out->loss = sums.labelled ? sums.loss / (double)sums.labelled : 0;
    out->perplexity = exp(out->loss);
    if (measure && !*signal) {
        status = measure->score(e.measured, &out->scores, error);
        BASE_TRY_GOTO(status, comm_agree_status(engine_group(engine), status, error), done);
    }
    out->seconds = base_seconds() - start;
done:
    free_evaluation(&e);
    return status;
}
