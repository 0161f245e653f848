/* sifr score: the log-probabilities that a model gives the labels of rows of data, in a file. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/read_flags.h"
#include "cli/row_options.h"
#include "sifr/score.h"

static const char name[] = "score";

typedef struct score_command {
    cli_read_flags read;
    cli_list data;
    cli_rows rows;
    const char *config_file;
    int64_t length;
    double temperature;
    bool temperature_given, plain;
    sifr_score_options options;
    double told; /* when progress was */
} score_command;

static sifr_status configure(const score_command *command, sifr_config *config, sifr_error *error) {
    char length[32];
    if (command->config_file) BASE_TRY(sifr_config_load(config, command->config_file, error));
    for (size_t i = 0; i < command->data.count; i++)
        BASE_TRY(sifr_config_set(config, "data", command->data.items[i], error));
    BASE_TRY(cli_rows_configure(&command->rows, config, error));
    if (command->plain) BASE_TRY(sifr_config_set(config, "no-special-tokens", NULL, error));
    snprintf(length, sizeof length, "%lld", (long long)command->length);
    return command->length ? sifr_config_set(config, "seq-length", length, error) : SIFR_OK;
}

static void show_progress(void *user, int64_t rows, int64_t total) {
    score_command *command = user;
    bool more = rows < total;
    if (base_seconds() - command->told < 0.2 && more) return;
    command->told = base_seconds();
    fprintf(stderr, more ? "\r\033[Krow %lld of %lld" : "\r\033[K", (long long)rows,
            (long long)total);
    fflush(stderr);
}

static void print_result(const score_command *command, const sifr_scored *made) {
    char rows[80], entries[80];
    printf("%s: %s of %s%s (%s)\n", command->options.output,
           base_format_counted(made->tokens, "token", entries),
           base_format_counted(made->rows, "row", rows),
           command->options.top_k ? ", with the likeliest words of each" : "", made->ran_in);
}

static sifr_status score(score_command *command, sifr_error *error) {
    sifr_score_options *o = &command->options;
    sifr_context *context = NULL;
    sifr_config *config = NULL;
    sifr_scored made = {.size = sizeof made};
    o->model = command->read.model;
    o->adapter = command->read.adapter;
    o->precision = command->read.precision;
    o->device = command->read.device;
    o->threads = command->read.threads;
    o->temperature = command->temperature_given ? &command->temperature : NULL;
    o->user = command;
    o->progress = isatty(STDERR_FILENO) ? show_progress : NULL;
    sifr_status status = cli_context(name, &context, error);
    if (status == SIFR_OK) status = sifr_config_create(&config, error);
    if (status == SIFR_OK) status = configure(command, config, error);
    o->config = config;
    command->told = base_seconds();
    if (status == SIFR_OK) status = sifr_score(context, o, &made, error);
    if (status == SIFR_OK) print_result(command, &made);
    sifr_config_free(config);
    sifr_context_free(context);
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
    score_command command = {.options = {.size = sizeof command.options}};
    cli_option options[CLI_EVALUATE_OPTIONS + CLI_ROW_OPTIONS + 8] = {
        {"data", CLI_LIST, "PATH", "as of sifr train: rows to fine-tune on, text or token stores",
         &command.data, NULL, false},
        {"config", CLI_TEXT, "FILE",
         "config of the run, for data, length and device that are not given", &command.config_file,
         NULL, false},
        {"output", CLI_TEXT, "FILE", "file to write", &command.options.output, NULL, true},
        {"seq-length", CLI_COUNT, "N",
         "as of the run that reads the file; default: the model's "
         "own maximum",
         &command.length, NULL, false},
        {"top-k", CLI_COUNT, "N", "the N likeliest words of each token as well",
         &command.options.top_k, NULL, false},
        {"temperature", CLI_NUMBER, "X", "divides their logits (default: 1)", &command.temperature,
         &command.temperature_given, false},
        {"batch-size", CLI_COUNT, "N", "rows at a time (default: about 4096 tokens)",
         &command.options.batch_size, NULL, false},
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
