#include <stdlib.h>
#include <string.h>

#include "api/api_callback.h"
#include "api/api_context.h"
#include "api/api_kept_log.h"
#include "api/api_read_model.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/inside.h"
#include "base/parallel.h"
#include "base/system.h"
#include "data/token_scores.h"
#include "infer/evaluator.h"
#include "sifr/score.h"
#include "train/prepare/read_data.h"
#include "train/prepare/run_settings.h"

/* Tokens in a batch if no batch size is given; without and with logits of all words. */
enum { BATCH_TOKENS = 4096, BATCH_LOGITS = 1 << 26 };

/* A run over the data. */
typedef struct score_run {
    sifr_score_options o;
    double temperature;
    const sifr_log *log;
    sifr_config config;
    checkpoint_model model;
    infer_options options;
    infer_inference *inference;
    data_set *data;
    data_rows rows;
    data_score_writer writer;
    int64_t length, batch, words;
    int threads;
    float *losses, *logits; /* of a batch */
    int32_t *top_ids;       /* of a batch, for rows with a label */
    float *top_logprobs;
} score_run;

/* ---- what is given ---- */

/* A mistyped --output must not replace the data, or a model. */
static sifr_status check_output(const char *path, sifr_error *error) {
    int64_t top;
    double temperature;
    sifr_error reason;
    if (!base_is_file(path) || data_token_scores_peek(path, &top, &temperature, &reason) == SIFR_OK)
        return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "--output %s: the file exists and holds no scores; name another", path);
}

static sifr_status configure(score_run *run, sifr_error *error) {
    const sifr_score_options *o = &run->o;
    if (!o->output) return base_fail(error, SIFR_USAGE, "--output: give the file to write");
    if (!o->config) return base_fail(error, SIFR_USAGE, "a config with the data is needed");
    BASE_TRY(check_output(o->output, error));
    BASE_TRY(config_copy(o->config, &run->config, error));
    BASE_TRY(config_resolve(&run->config, 1, error));
    if (run->config.data_count == 0)
        return base_fail(error, SIFR_USAGE, "--data PATH is needed, or --config with sifr.data");
    if (o->top_k < 0 || o->top_k > INT32_MAX)
        return base_fail(error, SIFR_USAGE, "--top-k %lld: too many", (long long)o->top_k);
    run->temperature = o->temperature ? *o->temperature : 1;
    if (!(run->temperature > 0 && run->temperature <= 1e6))
        return base_fail(error, SIFR_USAGE, "--temperature %g: it must be above 0",
                         run->temperature);
    if (o->batch_size >= 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "--batch-size %lld: must be 0 or more",
                     (long long)o->batch_size);
}

static sifr_status open_model(score_run *run, sifr_error *error) {
    const sifr_score_options *o = &run->o;
    api_read_model read = {o->model, o->adapter, o->precision, o->device, o->threads};
    infer_source source;
    run->options = (infer_options){.mode = PLAN_EVALUATE};
    BASE_TRY(api_read_model_source(&read, run->config.step.device, &source, error));
    BASE_TRY(infer_open_model(&source, &run->model, &run->options, run->log, error));
    engine_folder_warn(&run->model.folder, run->log);
    return train_sequence_length(&run->config, &run->model.folder.config, run->log, &run->length,
                                 error);
}

static sifr_status open_data(score_run *run, sifr_error *error) {
    const model_config *config = &run->model.folder.config;
    api_kept_log kept = {.to = run->log};
    sifr_log log = api_kept_log_open(&kept);
    if (config->task != MODEL_NEXT_TOKEN)
        return base_fail(error, SIFR_USAGE,
                         "%s: only a model that predicts the next token (%s) is "
                         "scored, and this one is for %s",
                         run->o.model, model_task_name(MODEL_NEXT_TOKEN),
                         model_task_name(config->task));
    data_set_options options = {.paths = run->config.data,
                                .count = run->config.data_count,
                                .special = !run->config.no_special_tokens,
                                .threads = (int)run->o.threads,
                                .log = &log};
    BASE_TRY(train_read_data(&run->model, run->length, &run->config, &options, &run->data, error));
    api_kept_log_show(&kept);
    return SIFR_OK;
}

/* ---- the pass ---- */

static void find_tops(void *argument, size_t row) {
    const score_run *run = argument;
    int64_t top = run->o.top_k, i = (int64_t)row;
    if (run->rows.labels[i] < 0) return;
    data_top_words(run->logits + i * run->words, run->words, run->temperature, top,
                   run->top_ids + i * top, run->top_logprobs + i * top);
}

static void read_row(const void *data, int64_t index, const data_rows *rows, int64_t at) {
    data_set_scored_read(data, index, rows, at);
}

static sifr_status take_token(score_run *run, int64_t row, int64_t i, sifr_error *error) {
    int64_t top = run->o.top_k;
    sifr_token_score score = {.size = sizeof score,
                              .row = row,
                              .logprob = -run->losses[i],
                              .top_count = top,
                              .top_ids = top ? run->top_ids + i * top : NULL,
                              .top_logprobs = top ? run->top_logprobs + i * top : NULL};
    BASE_TRY(data_score_writer_put(&run->writer, score.logprob, score.top_ids, score.top_logprobs,
                                   error));
    if (!run->o.token) return SIFR_OK;
    return api_called(BASE_OUT(run->o.token(run->o.user, &score, error)), error);
}

static sifr_status take_batch(void *user, const infer_batch *batch, sifr_error *error) {
    score_run *run = user;
    int64_t tokens = run->batch * run->rows.length;
    BASE_TRY(infer_losses(run->inference, run->losses, error));
    if (!(batch->loss - batch->loss == 0))
        return base_fail(error, SIFR_FAILED,
                         "%s: the loss is no number; the weights are damaged, or out of the range "
                         "of 16 bits (try --precision fp32)",
                         run->o.model);
    if (run->o.top_k) base_parallel(run->threads, (size_t)tokens, find_tops, run);
    for (int64_t i = 0; i < tokens; i++) {
        if (run->rows.labels[i] < 0) continue;
        BASE_TRY(take_token(run, batch->first + i / run->rows.length, i, error));
    }
    return SIFR_OK;
}

static sifr_status tell_progress(void *user, const infer_sums *sums, sifr_error *error) {
    score_run *run = user;
    (void)error;
    if (run->o.progress) BASE_OUT(run->o.progress(run->o.user, sums->rows, run->writer.rows));
    return SIFR_OK;
}

static sifr_status take_memory(score_run *run, sifr_error *error) {
    int64_t tokens = run->batch * run->rows.length, top = run->o.top_k, logits, tops;
    if (!base_mul_i64(tokens, run->words, &logits) || !base_mul_i64(tokens, top, &tops))
        return base_fail_alloc(error, INT64_MAX);
    BASE_TRY(base_alloc((size_t)tokens, sizeof *run->losses, &run->losses, error));
    if (top) BASE_TRY(base_alloc((size_t)logits, sizeof *run->logits, &run->logits, error));
    BASE_TRY(base_alloc((size_t)tops, sizeof *run->top_ids, &run->top_ids, error));
    return base_alloc((size_t)tops, sizeof *run->top_logprobs, &run->top_logprobs, error);
}

static sifr_status score_all(score_run *run, sifr_error *error) {
    infer_evaluator pass = infer_evaluator_alone(run->inference);
    infer_sums sums;
    pass.read = read_row;
    pass.data = run->data;
    pass.rows = &run->rows;
    pass.count = run->writer.rows;
    pass.logits = run->logits;
    pass.user = run;
    pass.take = take_batch;
    pass.after = tell_progress;
    sifr_status status = infer_evaluator_open(&pass, error);
    if (status == SIFR_OK) status = infer_evaluator_run(&pass, &sums, NULL, error);
    infer_evaluator_close(&pass);
    return status == SIFR_OK ? data_score_writer_commit(&run->writer, error) : status;
}

static void say_replaced(const score_run *run) {
    if (base_is_file(run->o.output))
        base_log(run->log, SIFR_LOG_INFO, "%s: the file that is there is replaced", run->o.output);
}

static int64_t choose_batch(const score_run *run, int64_t rows) {
    int64_t most = BATCH_TOKENS / run->length;
    if (run->o.top_k) most = base_min_i64(most, BATCH_LOGITS / run->words / run->length);
    return base_min_i64(run->o.batch_size ? run->o.batch_size : base_max_i64(most, 1), rows);
}

static sifr_status run_model(score_run *run, sifr_error *error) {
    int64_t rows = data_set_scored(run->data, run->length), top = run->o.top_k;
    base_system system;
    run->threads = (int)run->o.threads;
    if (run->threads <= 0) base_system_read(&system), run->threads = system.cpus;
    run->words = run->model.folder.config.vocab_size;
    if (rows == 0)
        return base_fail(error, SIFR_FAILED,
                         "%s: %lld tokens are too few for a window of %lld; give more text or a "
                         "shorter --seq-length",
                         run->config.data[0], (long long)data_set_tokens(run->data),
                         (long long)run->length);
    if (top > run->words)
        return base_fail(error, SIFR_USAGE, "--top-k %lld: the model has %lld words",
                         (long long)top, (long long)run->words);
    run->batch = choose_batch(run, rows);
    run->options.length = run->length;
    run->options.sequences = run->batch;
    run->options.logits = top > 0;
    say_replaced(run);
    BASE_TRY(data_set_rows(run->data, run->batch, run->length, &run->rows, error));
    BASE_TRY(data_set_begin_scores(run->data, run->length, run->o.output, top, run->temperature,
                                   &run->writer, error));
    BASE_TRY(infer_create(run->model.folder.model, &run->options, &run->inference, error));
    BASE_TRY(infer_fill(run->inference, checkpoint_model_values, &run->model, error));
    run->words = infer_words(run->inference);
    BASE_TRY(take_memory(run, error));
    return score_all(run, error);
}

static void free_run(score_run *run) {
    infer_free(run->inference);
    data_score_writer_free(&run->writer);
    data_rows_free(&run->rows);
    free(run->losses);
    free(run->logits);
    free(run->top_ids);
    free(run->top_logprobs);
    data_set_close(run->data);
    checkpoint_model_close(&run->model);
    config_free(&run->config);
}

static sifr_status score(score_run *run, sifr_scored *made, sifr_error *error) {
    BASE_TRY(configure(run, error));
    BASE_TRY(open_model(run, error));
    BASE_TRY(open_data(run, error));
    BASE_TRY(run_model(run, error));
    *made = (sifr_scored){.rows = run->writer.rows, .tokens = run->writer.entries};
    infer_ran_in(&run->options, run->inference, made->ran_in);
    infer_say_slow(run->inference, run->log);
    return SIFR_OK;
}

sifr_status sifr_score(sifr_context *context, const sifr_score_options *options, sifr_scored *out,
                       sifr_error *error) {
    BASE_ENTER(error, context);
    score_run run = {.log = &context->log};
    sifr_scored made;
    sifr_error own = {0};
    if (!error) error = &own; /* a callback has one */
    BASE_TRY(api_take_options("sifr_score_options", options, sizeof run.o, &run.o, error));
    if (out) BASE_TRY(api_check_result("sifr_scored", out, error));
    sifr_status status = score(&run, &made, error);
    free_run(&run);
    if (status == SIFR_OK && out) api_give_result(&made, sizeof made, out);
    return status;
}
