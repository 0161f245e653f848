#include "train/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/memory.h"

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

sifr_status train_evaluate(sifr_engine *engine, const train_data *data, int64_t sequences,
                           int64_t length, int64_t max_windows, bool (*stopped)(void *user),
                           void *user, train_evaluation *out, sifr_error *error) {
    int32_t *tokens = NULL, *labels = NULL;
    size_t count = (size_t)(sequences * length);
    int64_t windows = train_data_windows(data, length);
    double sum = 0, start = seconds_now();
    sifr_status status;
    *out = (train_evaluation){0};
    if (max_windows > 0) windows = base_min_i64(windows, max_windows);
    if (windows == 0)
        return base_fail(error, SIFR_FAILED,
                         "evaluation data: %lld tokens make no window of %lld and the token behind "
                         "it; give more text or a shorter seq-length",
                         (long long)train_data_tokens(data), (long long)length);
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *tokens, &tokens, error), done);
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *labels, &labels, error), done);
    for (int64_t w = 0; w < windows && !(stopped && stopped(user)); w += sequences) {
        int64_t here = base_min_i64(sequences, windows - w), labelled;
        double loss;
        for (int64_t i = 0; i < here; i++)
            train_data_window(data, length, w + i, tokens + i * length, labels + i * length);
        for (size_t i = (size_t)(here * length); i < count; i++) tokens[i] = 0, labels[i] = -100;
        BASE_TRY_GOTO(status, sifr_engine_evaluate(engine, tokens, labels, &loss, &labelled, error),
                      done);
        sum += loss;
        out->tokens += labelled;
        out->windows += here;
    }
    out->loss = out->tokens ? sum / (double)out->tokens : 0;
    out->perplexity = exp(out->loss);
    out->seconds = seconds_now() - start;
done:
    free(tokens);
    free(labels);
    return status;
}
