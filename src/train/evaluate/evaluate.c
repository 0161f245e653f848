#include "train/evaluate/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/heap.h"
#include "engine/handle.h"
#include "train/evaluate/predictions.h"
#include "train/evaluate/rewards.h"

/* One rank's micro batch; all stages of a pipeline tell the same. */
typedef struct evaluated {
    double loss;
    int64_t labelled, signal;
} evaluated;

typedef struct evaluator {
    sifr_engine *engine;
    const data_set *data;
    int64_t sequences, length, windows;
    data_rows rows;
    evaluated *all; /* of all ranks */
    train_predictions predictions;
    float *numbers;                            /* of all ranks' micro batches */
    bool paired;                               /* of preferences, whose numbers are rewards */
    float *mine, *rewards, *log_probabilities; /* of a micro batch; of all windows */
} evaluator;

/* Ranks that have micro batches of their own. */
static int32_t data_ranks(const sifr_engine *engine) {
    return plan_mesh_ranks(&engine_schedule(engine)->settings.mesh, PLAN_DATA);
}

static sifr_status take_pairs(evaluator *e, size_t ranks, sifr_error *error) {
    size_t micro = (size_t)e->sequences, tokens = micro * (size_t)e->length;
    BASE_TRY(base_alloc(ranks * micro, sizeof *e->numbers, &e->numbers, error));
    BASE_TRY(base_alloc(micro, sizeof *e->mine, &e->mine, error));
    BASE_TRY(base_alloc((size_t)e->windows, sizeof *e->rewards, &e->rewards, error));
    return base_alloc(tokens, sizeof *e->log_probabilities, &e->log_probabilities, error);
}

static sifr_status take_memory(evaluator *e, sifr_error *error) {
    BASE_TRY(data_set_rows(e->data, e->sequences, e->length, &e->rows, error));
    size_t ranks = (size_t)comm_size(engine_group(e->engine));
    BASE_TRY(base_alloc(ranks, sizeof *e->all, &e->all, error));
    if (e->paired) return take_pairs(e, ranks, error);
    if (!data_set_labelled(e->data)) return SIFR_OK;
    BASE_TRY(train_predictions_open(e->data, engine_words(engine_model(e->engine)), e->sequences,
                                    e->length, e->windows, &e->predictions, error));
    return base_alloc(ranks * (size_t)(e->sequences * e->predictions.width), sizeof *e->numbers,
                      &e->numbers, error);
}

/* Fills in the windows from `first` on; rows beyond the last window have no labels. */
static void fetch(const evaluator *e, int64_t first) {
    int64_t here = base_min_i64(e->sequences, base_max_i64(0, e->windows - first));
    for (int64_t i = 0; i < here; i++) data_set_window(e->data, first + i, &e->rows, i);
    data_rows_clear(&e->rows, here);
}

/* The loss of a micro batch and, of a classifier, what it predicts. */
static sifr_status run_batch(const evaluator *e, evaluated *mine, sifr_error *error) {
    sifr_batch batch = data_rows_batch(&e->rows);
    if (e->paired) {
        BASE_TRY(sifr_engine_evaluate(e->engine, &batch, &mine->loss, &mine->labelled, error));
        BASE_TRY(engine_read_log_probabilities(e->engine, true, 0, e->log_probabilities, error));
        train_rewards_take(engine_model(e->engine), &e->rows, 0, e->sequences, e->log_probabilities,
                           e->mine);
        return SIFR_OK;
    }
    if (!e->numbers)
        return sifr_engine_evaluate(e->engine, &batch, &mine->loss, &mine->labelled, error);
    BASE_TRY(engine_evaluate_logits(e->engine, &batch, &mine->loss, &mine->labelled,
                                    e->predictions.logits, error));
    train_predictions_take(&e->predictions, &e->rows);
    return SIFR_OK;
}

static sifr_status gather_rewards(const evaluator *e, int64_t first, sifr_error *error) {
    int64_t all = data_ranks(e->engine) * e->sequences;
    BASE_TRY(comm_all_gather_control(engine_group(e->engine), e->mine,
                                     e->sequences * (int64_t)sizeof *e->mine, e->numbers, error));
    int64_t here = base_min_i64(all, e->windows - first);
    memcpy(e->rewards + first, e->numbers, (size_t)here * sizeof *e->rewards);
    return SIFR_OK;
}

static void score_rewards(const evaluator *e, train_scores *out) {
    train_rewards means = train_rewards_mean(e->rewards, e->windows / 2);
    out->count = TRAIN_REWARDS;
    for (int i = 0; i < TRAIN_REWARDS; i++)
        out->items[i] = (train_score){train_reward_names[i], means.values[i]};
}

static sifr_status gather_predictions(const evaluator *e, int64_t first, sifr_error *error) {
    comm_group *group = engine_group(e->engine);
    if (e->paired) return gather_rewards(e, first, error);
    int64_t count = e->sequences * e->predictions.width;
    if (!e->numbers) return SIFR_OK;
    BASE_TRY(comm_all_gather_control(group, e->predictions.mine, count * (int64_t)sizeof(float),
                                     e->numbers, error));
    for (int32_t r = 0; r < data_ranks(e->engine); r++)
        train_predictions_put(&e->predictions, e->numbers + r * count, first + r * e->sequences,
                              e->sequences);
    return SIFR_OK;
}

/* Evaluates a micro batch on each rank. The sums are added in the order of the windows, as on one
 * rank, so the result does not depend on the number of ranks. */
static sifr_status run_round(evaluator *e, int64_t first, int64_t signal, double *sum,
                             train_evaluation *out, int *stop, sifr_error *error) {
    comm_group *group = engine_group(e->engine);
    int32_t ranks = data_ranks(e->engine);
    const plan_mesh *mesh = &engine_schedule(e->engine)->settings.mesh;
    evaluated mine = {.signal = signal};
    fetch(e, first + plan_mesh_place(mesh, PLAN_DATA) * e->sequences);
    BASE_TRY(run_batch(e, &mine, error));
    BASE_TRY(gather_predictions(e, first, error));
    BASE_TRY(comm_all_gather_control(group, &mine, sizeof mine, e->all, error));
    for (int32_t r = 0; r < ranks; r++) {
        if (first + r * e->sequences < e->windows) *sum += e->all[r].loss;
        out->tokens += e->all[r].labelled;
    }
    for (int32_t r = 0; r < comm_size(group); r++)
        if (!*stop) *stop = (int)e->all[r].signal;
    out->windows += base_min_i64(ranks * e->sequences, e->windows - first);
    return SIFR_OK;
}

sifr_status train_evaluate(sifr_engine *engine, const data_set *data, int64_t sequences,
                           int64_t length, int64_t max_windows, int (*stopped)(void *user),
                           void *user, train_evaluation *out, int *signal, sifr_error *error) {
    evaluator e = {.engine = engine, .data = data, .sequences = sequences, .length = length};
    double sum = 0, start = base_seconds();
    sifr_status status;
    *out = (train_evaluation){0};
    *signal = 0;
    e.windows = data_set_windows(data, length);
    if (max_windows > 0) e.windows = base_min_i64(e.windows, max_windows);
    e.paired = engine_model(engine)->preference != SIFR_PREFERENCE_NONE;
    if (e.paired && e.windows > 1) e.windows -= e.windows % 2;
    if (e.windows == 0)
        return base_fail(error, SIFR_FAILED,
                         "evaluation data: %lld tokens are too few for a window of %lld and the "
                         "token after it; give more text or a shorter seq-length",
                         (long long)data_set_tokens(data), (long long)length);
    status = take_memory(&e, error);
    BASE_TRY_GOTO(status, comm_agree_status(engine_group(engine), status, error), done);
    int64_t step = sequences * data_ranks(engine);
    for (int64_t w = 0; w < e.windows && !*signal; w += step) {
        int64_t asked = stopped ? stopped(user) : 0;
        BASE_TRY_GOTO(status, run_round(&e, w, asked, &sum, out, signal, error), done);
    }
    out->loss = out->tokens ? sum / (double)out->tokens : 0;
    out->perplexity = exp(out->loss);
    out->labelled = e.numbers != NULL;
    out->paired = e.paired;
    if (e.paired && !*signal) {
        score_rewards(&e, &out->scores);
    } else if (e.numbers && !*signal) {
        status = train_predictions_score(&e.predictions, &out->scores, error);
        BASE_TRY_GOTO(status, comm_agree_status(engine_group(engine), status, error), done);
    }
    out->seconds = base_seconds() - start;
done:
    train_predictions_close(&e.predictions);
    data_rows_free(&e.rows);
    free(e.numbers);
    free(e.mine);
    free(e.rewards);
    free(e.log_probabilities);
    free(e.all);
    return status;
}
