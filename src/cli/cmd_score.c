/* sifr score: the log-probabilities that a model gives the labels of rows of data, in a file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/parallel.h"
#include "base/system.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/launch/launch.h"
#include "cli/notes.h"
#include "cli/read_data.h"
#include "cli/read_model.h"
#include "cli/row_options.h"
#include "data/data.h"
#include "infer/evaluator.h"
#include "train/prepare/run_settings.h"
#include "train/prepare/run_task.h"

static const char name[] = "score";

/* Tokens in a batch if no batch size is given; without and with logits of all words. */
enum { BATCH_TOKENS = 4096, BATCH_LOGITS = 1 << 26 };

typedef struct score_command {
    cli_read_flags read;
    cli_list data;
    cli_rows rows;
    const char *output, *config_file;
    int64_t length, batch, top;
    double temperature;
    bool plain;
    sifr_config config;
} score_command;

/* A run over the data. */
typedef struct score_run {
    const score_command *command;
    infer_inference *inference;
    const data_set *data;
    data_rows rows;
    data_score_writer writer;
    int64_t batch, words;
    int threads;
    float *losses, *logits; /* of a batch */
    int32_t *top_ids;       /* of a batch, for rows with a label */
    float *top_logprobs;
    double told; /* when progress was */
} score_run;

static sifr_status configure(score_command *command, sifr_error *error) {
    sifr_config *config = &command->config;
    char length[32];
    BASE_TRY(config_create(config, error));
    if (command->config_file) BASE_TRY(config_load(config, command->config_file, error));
    for (size_t i = 0; i < command->data.count; i++)
        BASE_TRY(config_set(config, "data", command->data.items[i], error));
    BASE_TRY(cli_rows_configure(&command->rows, config, error));
    if (command->plain) BASE_TRY(config_set(config, "no-special-tokens", NULL, error));
    snprintf(length, sizeof length, "%lld", (long long)command->length);
    if (command->length) BASE_TRY(config_set(config, "seq-length", length, error));
    BASE_TRY(config_resolve(config, 1, error));
    if (config->data_count == 0)
        return base_fail(error, SIFR_USAGE, "--data PATH is needed, or --config with sifr.data");
    if (command->top < 0 || command->top > INT32_MAX)
        return base_fail(error, SIFR_USAGE, "--top-k %lld: too many", (long long)command->top);
    if (command->temperature > 0 && command->temperature <= 1e6) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "--temperature %g: it must be above 0",
                     command->temperature);
}

static sifr_status open_data(const score_command *command, const checkpoint_model *model,
                             int64_t length, data_set **out, sifr_error *error) {
    cli_notes notes = {.name = name};
    sifr_log log = cli_notes_log(&notes);
    if (model->folder.config.task != MODEL_NEXT_TOKEN)
        return base_fail(error, SIFR_USAGE,
                         "%s: only a model that predicts the next token (%s) is "
                         "scored, and this one is for %s",
                         command->read.model, model_task_name(MODEL_NEXT_TOKEN),
                         model_task_name(model->folder.config.task));
    data_set_options options = {.paths = command->config.data,
                                .count = command->config.data_count,
                                .special = !command->config.no_special_tokens,
                                .threads = (int)command->read.threads,
                                .log = &log};
    BASE_TRY(cli_read_data(model, length, &command->config, &options, out, error));
    cli_notes_show(&notes);
    return SIFR_OK;
}

static void find_tops(void *argument, size_t row) {
    const score_run *run = argument;
    int64_t top = run->command->top, i = (int64_t)row;
    if (run->rows.labels[i] < 0) return;
    data_top_words(run->logits + i * run->words, run->words, run->command->temperature, top,
                   run->top_ids + i * top, run->top_logprobs + i * top);
}

static void read_row(const void *data, int64_t index, const data_rows *rows, int64_t at) {
    data_set_scored_read(data, index, rows, at);
}

static sifr_status take_batch(void *user, const infer_batch *batch, sifr_error *error) {
    score_run *run = user;
    int64_t tokens = run->batch * run->rows.length, top = run->command->top;
    BASE_TRY(infer_losses(run->inference, run->losses, error));
    if (!(batch->loss - batch->loss == 0))
        return base_fail(error, SIFR_FAILED,
                         "%s: the loss is no number; the weights are damaged, or out of the range "
                         "of 16 bits (try --precision fp32)",
                         run->command->read.model);
    if (top) base_parallel(run->threads, (size_t)tokens, find_tops, run);
    for (int64_t i = 0; i < tokens; i++) {
        const int32_t *ids = top ? run->top_ids + i * top : NULL;
        const float *logprobs = top ? run->top_logprobs + i * top : NULL;
        if (run->rows.labels[i] < 0) continue;
        BASE_TRY(data_score_writer_put(&run->writer, -run->losses[i], ids, logprobs, error));
    }
    return SIFR_OK;
}

static sifr_status show_progress(void *user, const infer_sums *sums, sifr_error *error) {
    score_run *run = user;
    int64_t count = run->writer.rows;
    bool more = sums->rows < count;
    (void)error;
    if (!isatty(STDERR_FILENO) || (base_seconds() - run->told < 0.2 && more)) return SIFR_OK;
    run->told = base_seconds();
    fprintf(stderr, more ? "\r\033[Krow %lld of %lld" : "\r\033[K", (long long)sums->rows,
            (long long)count);
    fflush(stderr);
    return SIFR_OK;
}

static sifr_status take_memory(score_run *run, sifr_error *error) {
    int64_t tokens = run->batch * run->rows.length, top = run->command->top, logits, tops;
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
    pass.after = show_progress;
    run->told = base_seconds();
    sifr_status status = infer_evaluator_open(&pass, error);
    if (status == SIFR_OK) status = infer_evaluator_run(&pass, &sums, NULL, error);
    infer_evaluator_close(&pass);
    return status == SIFR_OK ? data_score_writer_commit(&run->writer, error) : status;
}

static int64_t choose_batch(const score_command *command, int64_t length, int64_t words,
                            int64_t rows) {
    int64_t most = BATCH_TOKENS / length;
    if (command->top) most = base_min_i64(most, BATCH_LOGITS / words / length);
    return base_min_i64(command->batch ? command->batch : base_max_i64(most, 1), rows);
}

static sifr_status run_model(score_command *command, const checkpoint_model *model,
                             infer_options *options, int64_t length, score_run *run,
                             sifr_error *error) {
    int64_t rows = data_set_scored(run->data, length);
    base_system system;
    run->threads = (int)command->read.threads;
    if (run->threads <= 0) base_system_read(&system), run->threads = system.cpus;
    run->words = model->folder.config.vocab_size;
    if (rows == 0)
        return base_fail(error, SIFR_FAILED,
                         "%s: %lld tokens are too few for a window of %lld; give more text or a "
                         "shorter --seq-length",
                         command->config.data[0], (long long)data_set_tokens(run->data),
                         (long long)length);
    if (command->top > run->words)
        return base_fail(error, SIFR_USAGE, "--top-k %lld: the model has %lld words",
                         (long long)command->top, (long long)run->words);
    run->batch = choose_batch(command, length, run->words, rows);
    options->length = length;
    options->sequences = run->batch;
    options->logits = command->top > 0;
    BASE_TRY(data_set_rows(run->data, run->batch, length, &run->rows, error));
    BASE_TRY(data_set_begin_scores(run->data, length, command->output, command->top,
                                   command->temperature, &run->writer, error));
    BASE_TRY(infer_create(model->folder.model, options, &run->inference, error));
    BASE_TRY(infer_fill(run->inference, checkpoint_model_values, model, error));
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
}

static sifr_status score(score_command *command, sifr_error *error) {
    checkpoint_model model = {0};
    data_set *data = NULL;
    infer_options options = {.mode = PLAN_EVALUATE};
    sifr_log log = cli_log(name);
    int64_t length;
    score_run run = {.command = command};
    char rows[80], entries[80], ran_in[INFER_RAN_IN];
    sifr_status status;
    BASE_TRY_GOTO(status, configure(command, error), done);
    options.device = command->config.step.device;
    BASE_TRY_GOTO(status, cli_read_model_open(&command->read, &model, &options, &log, error), done);
    engine_folder_warn(&model.folder, &log);
    BASE_TRY_GOTO(
        status, train_sequence_length(&command->config, &model.folder.config, &log, &length, error),
        done);
    BASE_TRY_GOTO(status, open_data(command, &model, length, &data, error), done);
    run.data = data;
    status = run_model(command, &model, &options, length, &run, error);
    if (status != SIFR_OK) goto done;
    printf("%s: %s of %s%s (%s)\n", command->output,
           base_format_counted(run.writer.entries, "token", entries),
           base_format_counted(run.writer.rows, "row", rows),
           command->top ? ", with the likeliest words of each" : "",
           infer_ran_in(&options, run.inference, ran_in));
    infer_say_slow(run.inference, &log);
done:
    free_run(&run);
    data_set_close(data);
    checkpoint_model_close(&model);
    config_free(&command->config);
    return status;
}

int cli_score(int argc, char **argv) {
    static const cli_usage usage = {
        .name = name,
        .summary =
            "Writes the log-probability that a model gives each learned token of the data, as "
            "safetensors:\nthe reference of preferences (sifr train --preference --reference), or, "
            "with the likeliest\nwords of each token, what another model is distilled from (sifr "
            "train --distill).",
        .example = "sifr score --model teacher --data chats.jsonl --output scores.safetensors "
                   "--top-k 64"};
    score_command command = {.temperature = 1};
    cli_option options[CLI_EVALUATE_OPTIONS + CLI_ROW_OPTIONS + 8] = {
        {"data", CLI_LIST, "PATH", "as of sifr train: rows to fine-tune on, text or token stores",
         &command.data, NULL, false},
        {"config", CLI_TEXT, "FILE",
         "config of the run, for data, length and device that are not given", &command.config_file,
         NULL, false},
        {"output", CLI_TEXT, "FILE", "file to write", &command.output, NULL, true},
        {"seq-length", CLI_COUNT, "N",
         "as of the run that reads the file; default: the model's "
         "own maximum",
         &command.length, NULL, false},
        {"top-k", CLI_COUNT, "N", "the N likeliest words of each token as well", &command.top, NULL,
         false},
        {"temperature", CLI_NUMBER, "X", "divides their logits (default: 1)", &command.temperature,
         NULL, false},
        {"batch-size", CLI_COUNT, "N", "rows at a time (default: about 4096 tokens)",
         &command.batch, NULL, false},
        {"no-special-tokens", CLI_FLAG, NULL, "as of sifr train", &command.plain, NULL, false},
    };
    int code;
    sifr_error error = {0};
    cli_row_options(&command.rows, options + 8);
    cli_evaluate_options(&command.read, options + 8 + CLI_ROW_OPTIONS);
    if (!cli_parse(&usage, options, sizeof options / sizeof *options, argc, argv, NULL, &code))
        return code;
    sifr_status status = score(&command, &error);
    cli_list_free(&command.data);
    cli_rows_free(&command.rows);
    return status == SIFR_OK ? SIFR_OK : cli_fail(name, &error);
}
