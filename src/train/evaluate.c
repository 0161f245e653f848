#include "train/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/heap.h"
#include "engine/handle.h"

/* One rank's micro batch. */
typedef struct evaluated {
    double loss;
    int64_t labelled, signal;
} evaluated;

typedef struct evaluator {
    sifr_engine *engine;
    const train_data *data;
    int64_t sequences, length, windows;
    train_rows rows;
    evaluated *all; /* of all ranks */
} evaluator;

static sifr_status take_memory(evaluator *e, sifr_error *error) {
    BASE_TRY(train_data_rows(e->data, e->sequences, e->length, &e->rows, error));
    return base_alloc((size_t)comm_size(engine_group(e->engine)), sizeof *e->all, &e->all, error);
}

/* Fills in the windows from `first` on; rows beyond the last window have no labels. */
static void fetch(const evaluator *e, int64_t first) {
    int64_t here = base_min_i64(e->sequences, base_max_i64(0, e->windows - first));
    for (int64_t i = 0; i < here; i++) train_data_window(e->data, first + i, &e->rows, i);
    train_rows_clear(&e->rows, here);
}

/* Evaluates a micro batch on each rank. The sums are added in the order of the windows, as on one
 * rank, so the result does not depend on the number of ranks. */
static sifr_status run_round(evaluator *e, int64_t first, int64_t signal, double *sum,
                             train_evaluation *out, int *stop, sifr_error *error) {
    comm_group *group = engine_group(e->engine);
    int32_t ranks = comm_size(group);
    evaluated mine = {.signal = signal};
    fetch(e, first + comm_rank(group) * e->sequences);
    sifr_batch batch = train_rows_batch(&e->rows);
    BASE_TRY(sifr_engine_evaluate(e->engine, &batch, &mine.loss, &mine.labelled, error));
    BASE_TRY(comm_all_gather_control(group, &mine, sizeof mine, e->all, error));
    for (int32_t r = 0; r < ranks; r++) {
        if (first + r * e->sequences < e->windows) *sum += e->all[r].loss;
        out->tokens += e->all[r].labelled;
        if (!*stop) *stop = (int)e->all[r].signal;
    }
    out->windows += base_min_i64(ranks * e->sequences, e->windows - first);
    return SIFR_OK;
}

sifr_status train_evaluate(sifr_engine *engine, const train_data *data, int64_t sequences,
                           int64_t length, int64_t max_windows, int (*stopped)(void *user),
                           void *user, train_evaluation *out, int *signal, sifr_error *error) {
    evaluator e = {.engine = engine, .data = data, .sequences = sequences, .length = length};
    double sum = 0, start = base_seconds();
    sifr_status status;
    *out = (train_evaluation){0};
    *signal = 0;
    e.windows = train_data_windows(data, length);
    if (max_windows > 0) e.windows = base_min_i64(e.windows, max_windows);
    if (e.windows == 0)
        return base_fail(error, SIFR_FAILED,
                         "evaluation data: %lld tokens are too few for a window of %lld and the "
                         "token after it; give more text or a shorter seq-length",
                         (long long)train_data_tokens(data), (long long)length);
    status = take_memory(&e, error);
    BASE_TRY_GOTO(status, comm_agree_status(engine_group(engine), status, error), done);
    int64_t step = sequences * comm_size(engine_group(engine));
    for (int64_t w = 0; w < e.windows && !*signal; w += step) {
        int64_t asked = stopped ? stopped(user) : 0;
        BASE_TRY_GOTO(status, run_round(&e, w, asked, &sum, out, signal, error), done);
    }
    out->loss = out->tokens ? sum / (double)out->tokens : 0;
    out->perplexity = exp(out->loss);
    out->seconds = base_seconds() - start;
done:
    train_rows_free(&e.rows);
    free(e.all);
    return status;
}
