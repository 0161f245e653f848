/* sifr eval: mean loss of a model over consecutive windows of a text or token store. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/notes.h"
#include "cli/ran_json.h"
#include "cli/read_data.h"
#include "cli/read_model.h"
#include "cli/row_options.h"
#include "data/data.h"
#include "device/kinds.h"
#include "infer/evaluator.h"
#include "train/evaluate/predictions.h"
#include "train/prepare/run_settings.h"
#include "train/prepare/run_task.h"
#include "train/report/monitor.h"

/* Tokens in a batch if no batch size is given. */
enum { BATCH_TOKENS = 4096 };
/* Of the tokens of a masked model: the config's default. */
#define MASK_PROBABILITY 0.15

typedef struct eval_command {
    cli_read_flags read;
    cli_list data;
    cli_rows rows;
    sifr_config config; /* how rows are read */
    int64_t length, max_windows, batch;
    bool batch_given, plain, json;
    data_label_columns columns;
    data_labelled *labelled;
    cli_notes *notes;
} eval_command;

typedef struct eval_result {
    double loss, seconds;
    int64_t windows, tokens;
    const char *precision, *device;
    char ran_in[INFER_RAN_IN];
    bool labelled;
    train_scores scores;
    train_ran ran;
} eval_result;

static sifr_status open_data(const eval_command *command, const checkpoint_model *model,
                             data_set **data, sifr_error *error) {
    sifr_log log = cli_notes_log(command->notes);
    data_set_options options = {.paths = command->data.items,
                                .count = command->data.count,
                                .special = !command->plain,
                                .threads = (int)command->read.threads,
                                .log = &log};
    train_data_form(&model->folder, command->length, &command->columns, MASK_PROBABILITY,
                    command->labelled, &options);
    return cli_read_data(model, command->length, &command->config, &options, data, error);
}

static void show_progress(int64_t done, int64_t windows, double loss, bool last) {
    if (!isatty(STDERR_FILENO)) return;
    if (last)
        fprintf(stderr, "\r\033[K");
    else
        fprintf(stderr, "\r\033[Kwindow %lld of %lld, loss %.4f", (long long)done,
                (long long)windows, loss);
    fflush(stderr);
}

/* A run over the data. */
typedef struct eval_run {
    const eval_command *command;
    int64_t windows;
    double told;
} eval_run;

/* Once the sum is not a number, no further window can change that. */
static sifr_status after_batch(void *user, const infer_sums *sums, sifr_error *error) {
    eval_run *run = user;
    double now = base_seconds();
    if (!isfinite(sums->loss))
        return base_fail(
            error, SIFR_FAILED,
            "%s: the loss is %s within the first %lld tokens; the weights are damaged, "
            "or out of the range of 16 bits (try --precision fp32)",
            run->command->read.model, isnan(sums->loss) ? "not a number" : "infinite",
            (long long)sums->labelled);
    if (now - run->told < 0.2) return SIFR_OK;
    run->told = now;
    show_progress(sums->rows, run->windows, sums->loss / (double)sums->labelled, false);
    return SIFR_OK;
}

static sifr_status run_windows(const eval_command *command, infer_inference *inference,
                               int64_t batch, const data_set *data, eval_result *result,
                               sifr_error *error) {
    data_rows rows;
    infer_evaluator pass = infer_evaluator_alone(inference);
    infer_sums sums;
    train_predictions predictions = {0};
    double start = base_seconds();
    eval_run run = {.command = command, .windows = result->windows, .told = start};
    sifr_status status;
    BASE_TRY(data_set_rows(data, batch, command->length, &rows, error));
    infer_evaluator_windows(&pass, data, &rows, result->windows);
    pass.user = &run;
    pass.after = after_batch;
    if (result->labelled) {
        BASE_TRY_GOTO(status,
                      train_predictions_open(data, infer_words(inference), batch, command->length,
                                             result->windows, &predictions, error),
                      done);
        train_predictions_watch(&predictions, &pass);
    }
    BASE_TRY_GOTO(status, infer_evaluator_open(&pass, error), done);
    BASE_TRY_GOTO(status, infer_evaluator_run(&pass, &sums, NULL, error), done);
    result->tokens = sums.labelled;
    result->loss = sums.loss / (double)sums.labelled;
    result->seconds = base_seconds() - start;
    if (result->labelled) status = train_predictions_score(&predictions, &result->scores, error);
done:
    show_progress(0, 0, 0, true);
    infer_evaluator_close(&pass);
    train_predictions_close(&predictions);
    data_rows_free(&rows);
    return status;
}

static sifr_status configure(eval_command *command, sifr_error *error) {
    BASE_TRY(config_create(&command->config, error));
    BASE_TRY(cli_rows_configure(&command->rows, &command->config, error));
    return config_resolve(&command->config, 1, error);
}

static sifr_status evaluate(eval_command *command, eval_result *result, sifr_error *error) {
    checkpoint_model model = {0};
    const engine_folder *folder = &model.folder;
    infer_inference *inference = NULL;
    data_set *data = NULL;
    infer_options options = {.mode = PLAN_EVALUATE, .length = command->length};
    sifr_log log = cli_notes_log(command->notes);
    sifr_status status;
    if (command->length == 0)
        return base_fail(error, SIFR_USAGE, "--seq-length 0: a window needs at least one token");
    if (command->batch_given && command->batch == 0)
        return base_fail(error, SIFR_USAGE,
                         "--batch-size 0: a batch needs at least one window; leave it out for a "
                         "batch of about %d tokens",
                         BATCH_TOKENS);
    BASE_TRY_GOTO(status, configure(command, error), done);
    BASE_TRY_GOTO(status, cli_read_model_open(&command->read, &model, &options, &log, error), done);
    result->precision = infer_precision_name(options.precision);
    result->device = device_kind_name(options.device);
    engine_folder_warn(folder, &log);
    if (command->length > model_positions(&folder->config))
        base_log(&log, SIFR_LOG_WARNING,
                 "--seq-length %lld: more than the %lld positions that %s was trained with",
                 (long long)command->length, (long long)model_positions(&folder->config),
                 command->read.model);
    BASE_TRY_GOTO(status, open_data(command, &model, &data, error), done);
    result->labelled = options.logits = data_set_labelled(data) != NULL;
    result->windows = data_set_windows(data, command->length);
    if (command->max_windows > 0)
        result->windows = base_min_i64(result->windows, command->max_windows);
    if (result->windows == 0) {
        status = base_fail(error, SIFR_FAILED,
                           "%s: %lld tokens are too few for a window of %lld and the token after "
                           "it; give more text or a shorter --seq-length",
                           command->data.items[0], (long long)data_set_tokens(data),
                           (long long)command->length);
        goto done;
    }
    options.sequences =
        command->batch ? command->batch : base_max_i64(1, BATCH_TOKENS / command->length);
    options.sequences = base_min_i64(options.sequences, result->windows);
    BASE_TRY_GOTO(status, infer_create(folder->model, &options, &inference, error), done);
    BASE_TRY_GOTO(status, infer_fill(inference, checkpoint_model_values, &model, error), done);
    status = run_windows(command, inference, options.sequences, data, result, error);
    infer_ran_in(&options, inference, result->ran_in);
    infer_say_slow(inference, &log);
    train_ran_alone(infer_device(inference), &result->ran);
done:
    infer_free(inference);
    data_set_close(data);
    checkpoint_model_close(&model);
    config_free(&command->config);
    return status;
}

static int print_result(const eval_command *command, const eval_result *r) {
    if (!command->json && r->labelled) {
        char count[80];
        printf("loss %.6f", r->loss);
        for (int i = 0; i < r->scores.count; i++)
            printf(", %s %.6f", r->scores.items[i].name, r->scores.items[i].value);
        printf(" over %s (%s)\n", base_format_counted(r->windows, "example", count), r->ran_in);
        return SIFR_OK;
    }
    if (!command->json) {
        char tokens[80], windows[80];
        printf("loss %.6f, perplexity %.3f over %s in %s of %lld (%s)\n", r->loss, exp(r->loss),
               base_format_counted(r->tokens, "token", tokens),
               base_format_counted(r->windows, "window", windows), (long long)command->length,
               r->ran_in);
        return SIFR_OK;
    }
    json_t *out = json_pack("{s:o, s:o, s:I, s:I, s:I, s:s, s:s, s:o}", "loss",
                            base_json_finite(r->loss), "perplexity", base_json_finite(exp(r->loss)),
                            "tokens", (json_int_t)r->tokens, "windows", (json_int_t)r->windows,
                            "seq_length", (json_int_t)command->length, "precision", r->precision,
                            "device", r->device, "seconds", base_json_finite(r->seconds));
    bool whole = out && json_object_set_new(out, "ran",
                                            cli_ran_json(&r->ran, command->notes->warnings)) == 0;
    if (out && r->labelled) json_object_del(out, "perplexity");
    for (int i = 0; whole && i < r->scores.count; i++)
        whole = json_object_set_new(out, r->scores.items[i].name,
                                    base_json_finite(r->scores.items[i].value)) == 0;
    if (!whole) return cli_fail_with("eval", SIFR_NO_MEMORY, "out of memory");
    json_dumpf(out, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(out);
    return SIFR_OK;
}

int cli_eval(int argc, char **argv) {
    static const cli_usage usage = {
        .name = "eval",
        .summary = "Computes a model's mean loss per token and perplexity over consecutive windows "
                   "of N\ntokens. Window i reads the tokens iN to iN+N and predicts each from "
                   "those before it.",
        .example = "sifr eval --model gpt2 --data held-out.txt --seq-length 1024"};
    cli_notes notes = {.name = "eval", .keeps_warnings = true};
    data_labelled labelled;
    eval_command command = {.notes = &notes, .labelled = &labelled};
    cli_option options[CLI_EVALUATE_OPTIONS + CLI_ROW_OPTIONS + 9] = {
        {"data", CLI_LIST, "PATH",
         "text files, directories, globs, token stores, or rows to fine-tune on", &command.data,
         NULL, true},
        {"seq-length", CLI_COUNT, "N", "tokens in a window", &command.length, NULL, true},
        {"max-windows", CLI_COUNT, "N", "evaluate at most N windows (default: all)",
         &command.max_windows, NULL, false},
        {"batch-size", CLI_COUNT, "N",
         "windows evaluated at a time (default: as many as make 4096 tokens)", &command.batch,
         &command.batch_given, false},
        {"no-special-tokens", CLI_FLAG, NULL,
         "leave out the special tokens that the tokenizer's post-processor adds to each text",
         &command.plain, NULL, false},
        {"text-column", CLI_TEXT, "NAME", "of a classifier: column of the texts",
         &command.columns.text, NULL, false},
        {"pair-column", CLI_TEXT, "NAME", "column of the second text of each pair",
         &command.columns.pair, NULL, false},
        {"label-column", CLI_TEXT, "NAME", "column of the labels", &command.columns.label, NULL,
         false},
        {"json", CLI_FLAG, NULL, "print one JSON object", &command.json, NULL, false},
    };
    int code;
    cli_row_options(&command.rows, options + 9);
    cli_evaluate_options(&command.read, options + 9 + CLI_ROW_OPTIONS);
    if (!cli_parse(&usage, options, sizeof options / sizeof *options, argc, argv, NULL, &code))
        return code;
    if (command.json) notes.warnings = json_array();
    sifr_error error = {0};
    eval_result result = {0};
    if (evaluate(&command, &result, &error) == SIFR_OK) {
        cli_notes_show(&notes);
        code = print_result(&command, &result);
    } else {
        code = cli_fail("eval", &error);
    }
    json_decref(notes.warnings);
    cli_list_free(&command.data);
    cli_rows_free(&command.rows);
    return code;
}
