#include <jansson.h>
#include <math.h>
#include <string.h>

#include "api/api_context.h"
#include "api/api_read_model.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/inside.h"
#include "device/kinds.h"
#include "infer/evaluator.h"
#include "sifr/evaluate.h"
#include "train/evaluate/predictions.h"
#include "train/prepare/read_data.h"
#include "train/prepare/run_task.h"
#include "train/report/ran_describe.h"

/* Tokens in a batch if no batch size is given. */
enum { BATCH_TOKENS = 4096 };
/* Of the tokens of a masked model: the config's default. */
#define MASK_PROBABILITY 0.15

/* A run over the data. */
typedef struct evaluate_run {
    sifr_evaluate_options o;
    const sifr_log *log;
    sifr_config config; /* how rows are read */
    checkpoint_model model;
    infer_options options;
    infer_inference *inference;
    data_labelled labelled;
    data_set *data;
    int64_t windows;
    train_scores scores;
} evaluate_run;

/* ---- what is given ---- */

static sifr_status check(const sifr_evaluate_options *o, sifr_error *error) {
    if (o->seq_length < 1)
        return base_fail(error, SIFR_USAGE, "--seq-length %lld: a window needs at least one token",
                         (long long)o->seq_length);
    if (o->batch_size < 0)
        return base_fail(error, SIFR_USAGE, "--batch-size %lld: a batch needs at least one window",
                         (long long)o->batch_size);
    if (o->max_windows < 0)
        return base_fail(error, SIFR_USAGE, "--max-windows %lld: must be 0 or more",
                         (long long)o->max_windows);
    if (o->path_count) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "--data: give a path");
}

static sifr_status configure(evaluate_run *run, sifr_error *error) {
    BASE_TRY(check(&run->o, error));
    if (run->o.config)
        BASE_TRY(config_copy(run->o.config, &run->config, error));
    else
        BASE_TRY(config_create(&run->config, error));
    return config_resolve(&run->config, 1, error);
}

static sifr_status open_model(evaluate_run *run, sifr_error *error) {
    const sifr_evaluate_options *o = &run->o;
    const engine_folder *folder = &run->model.folder;
    api_read_model read = {o->model, o->adapter, o->precision, o->device, o->threads};
    infer_source source;
    run->options = (infer_options){.mode = PLAN_EVALUATE, .length = o->seq_length};
    BASE_TRY(api_read_model_source(&read, SIFR_DEVICE_AUTO, &source, error));
    BASE_TRY(infer_open_model(&source, &run->model, &run->options, run->log, error));
    engine_folder_warn(folder, run->log);
    if (o->seq_length > model_positions(&folder->config))
        base_log(run->log, SIFR_LOG_WARNING,
                 "--seq-length %lld: more than the %lld positions that %s was trained with",
                 (long long)o->seq_length, (long long)model_positions(&folder->config), o->model);
    return SIFR_OK;
}

static sifr_status open_data(evaluate_run *run, sifr_error *error) {
    const sifr_evaluate_options *o = &run->o;
    data_label_columns columns = {
        .text = o->text_column, .pair = o->pair_column, .label = o->label_column};
    data_set_options options = {.paths = o->paths,
                                .count = o->path_count,
                                .special = !o->no_special_tokens,
                                .threads = (int)o->threads,
                                .log = run->log};
    train_data_form(&run->model.folder, o->seq_length, &columns, MASK_PROBABILITY, &run->labelled,
                    &options);
    return train_read_data(&run->model, o->seq_length, &run->config, &options, &run->data, error);
}

static sifr_status choose_windows(evaluate_run *run, sifr_error *error) {
    const sifr_evaluate_options *o = &run->o;
    int64_t batch = o->batch_size ? o->batch_size : base_max_i64(1, BATCH_TOKENS / o->seq_length);
    run->windows = data_set_windows(run->data, o->seq_length);
    if (o->max_windows > 0) run->windows = base_min_i64(run->windows, o->max_windows);
    if (run->windows == 0)
        return base_fail(error, SIFR_FAILED,
                         "%s: %lld tokens are too few for a window of %lld and the token after "
                         "it; give more text or a shorter --seq-length",
                         o->paths[0], (long long)data_set_tokens(run->data),
                         (long long)o->seq_length);
    run->options.logits = data_set_labelled(run->data) != NULL;
    run->options.sequences = base_min_i64(batch, run->windows);
    return SIFR_OK;
}

/* ---- the pass ---- */

/* Once the sum is not a number, no further window can change that. */
static sifr_status after_batch(void *user, const infer_sums *sums, sifr_error *error) {
    const evaluate_run *run = user;
    if (!isfinite(sums->loss))
        return base_fail(
            error, SIFR_FAILED,
            "%s: the loss is %s within the first %lld tokens; the weights are damaged, "
            "or out of the range of 16 bits (try --precision fp32)",
            run->o.model, isnan(sums->loss) ? "not a number" : "infinite",
            (long long)sums->labelled);
    if (run->o.progress)
        BASE_OUT(run->o.progress(run->o.user, sums->rows, run->windows,
                                 sums->loss / (double)sums->labelled));
    return SIFR_OK;
}

static sifr_status run_pass(infer_evaluator *pass, infer_sums *sums, sifr_error *error) {
    BASE_TRY(infer_evaluator_open(pass, error));
    return infer_evaluator_run(pass, sums, NULL, error);
}

static sifr_status run_windows(evaluate_run *run, sifr_evaluated *made, sifr_error *error) {
    int64_t batch = run->options.sequences, length = run->o.seq_length;
    data_rows rows;
    infer_evaluator pass = infer_evaluator_alone(run->inference);
    infer_sums sums = {0};
    train_predictions predictions = {0};
    double start = base_seconds();
    sifr_status status = SIFR_OK;
    BASE_TRY(data_set_rows(run->data, batch, length, &rows, error));
    infer_evaluator_windows(&pass, run->data, &rows, run->windows);
    pass.user = run;
    pass.after = after_batch;
    if (run->options.logits) {
        status = train_predictions_open(run->data, infer_words(run->inference), batch, length,
                                        run->windows, &predictions, error);
        if (status == SIFR_OK) train_predictions_watch(&predictions, &pass);
    }
    if (status == SIFR_OK) status = run_pass(&pass, &sums, error);
    made->tokens = sums.labelled;
    made->loss = sums.loss / (double)sums.labelled;
    made->seconds = base_seconds() - start;
    if (status == SIFR_OK && run->options.logits)
        status = train_predictions_score(&predictions, &run->scores, error);
    infer_evaluator_close(&pass);
    train_predictions_close(&predictions);
    data_rows_free(&rows);
    return status;
}

static sifr_status report(const evaluate_run *run, char **out, sifr_error *error) {
    train_ran ran = {0};
    train_ran_alone(infer_device(run->inference), &ran);
    json_t *described = train_ran_json(&ran);
    *out = described ? json_dumps(described, JSON_INDENT(2)) : NULL;
    json_decref(described);
    return *out ? SIFR_OK : base_fail_alloc(error, 4096);
}

static sifr_status evaluate(evaluate_run *run, sifr_evaluated *made, sifr_error *error) {
    BASE_TRY(configure(run, error));
    BASE_TRY(open_model(run, error));
    BASE_TRY(open_data(run, error));
    BASE_TRY(choose_windows(run, error));
    BASE_TRY(infer_create(run->model.folder.model, &run->options, &run->inference, error));
    BASE_TRY(infer_fill(run->inference, checkpoint_model_values, &run->model, error));
    BASE_TRY(run_windows(run, made, error));
    infer_ran_in(&run->options, run->inference, made->ran_in);
    infer_say_slow(run->inference, run->log);
    made->windows = run->windows;
    made->has_perplexity = !run->options.logits;
    made->precision = infer_precision_name(run->options.precision);
    made->device = device_kind_name(run->options.device);
    made->score_count = run->scores.count;
    for (int i = 0; i < run->scores.count; i++)
        made->scores[i] = (sifr_train_score){run->scores.items[i].name, run->scores.items[i].value};
    return run->o.report ? report(run, &made->report, error) : SIFR_OK;
}

_Static_assert((int)SIFR_MOST_SCORES >= (int)TRAIN_MOST_SCORES, "all scores have a place");

sifr_status sifr_evaluate(sifr_context *context, const sifr_evaluate_options *options,
                          sifr_evaluated *out, sifr_error *error) {
    BASE_ENTER(error, context, out);
    evaluate_run run = {.log = &context->log};
    sifr_evaluated made = {0};
    BASE_TRY(api_take_options("sifr_evaluate_options", options, sizeof run.o, &run.o, error));
    BASE_TRY(api_check_result("sifr_evaluated", out, error));
    BASE_TRY(api_check_list("sifr_evaluate_options.paths", run.o.paths, run.o.path_count, error));
    sifr_status status = evaluate(&run, &made, error);
    infer_free(run.inference);
    data_set_close(run.data);
    checkpoint_model_close(&run.model);
    config_free(&run.config);
    if (status == SIFR_OK) api_give_result(&made, sizeof made, out);
    return status;
}
