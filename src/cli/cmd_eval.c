/* sifr eval: mean loss of a model over consecutive windows of a text or token store. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/notes.h"
#include "cli/read_flags.h"
#include "cli/row_options.h"
#include "sifr/evaluate.h"

/* Tokens in a batch if no batch size is given. */
enum { BATCH_TOKENS = 4096 };

typedef struct eval_command {
    cli_read_flags read;
    cli_list data;
    cli_rows rows; /* how rows are read */
    sifr_evaluate_options options;
    bool batch_given, json;
    cli_notes *notes;
    double told; /* when progress was; 0: never */
} eval_command;

static void show_progress(void *user, int64_t windows, int64_t total, double loss) {
    eval_command *command = user;
    double now = base_seconds();
    if (now - command->told < 0.2) return;
    command->told = now;
    fprintf(stderr, "\r\033[Kwindow %lld of %lld, loss %.4f", (long long)windows, (long long)total,
            loss);
    fflush(stderr);
}

static sifr_status configure(const eval_command *command, sifr_config **config, sifr_error *error) {
    if (command->batch_given && command->options.batch_size == 0)
        return base_fail(error, SIFR_USAGE,
                         "--batch-size 0: a batch needs at least one window; leave it out for a "
                         "batch of about %d tokens",
                         BATCH_TOKENS);
    BASE_TRY(sifr_config_create(config, error));
    return cli_rows_configure(&command->rows, *config, error);
}

static sifr_status evaluate(eval_command *command, sifr_evaluated *result, sifr_error *error) {
    sifr_evaluate_options *o = &command->options;
    sifr_context_options log = {.size = sizeof log, .log = cli_notes_log(command->notes)};
    sifr_context *context = NULL;
    sifr_config *config = NULL;
    bool live = isatty(STDERR_FILENO);
    o->model = command->read.model;
    o->adapter = command->read.adapter;
    o->precision = command->read.precision;
    o->device = command->read.device;
    o->threads = command->read.threads;
    o->paths = command->data.items;
    o->path_count = command->data.count;
    o->report = command->json;
    o->user = command;
    o->progress = live ? show_progress : NULL;
    command->told = base_seconds();
    sifr_status status = configure(command, &config, error);
    o->config = config;
    if (status == SIFR_OK) status = sifr_context_create(&log, &context, error);
    if (status == SIFR_OK) status = sifr_evaluate(context, o, result, error);
    if (live) fprintf(stderr, "\r\033[K");
    sifr_config_free(config);
    sifr_context_free(context);
    return status;
}

static void print_text(const eval_command *command, const sifr_evaluated *r) {
    char tokens[80], windows[80];
    if (r->has_perplexity) {
        printf("loss %.6f, perplexity %.3f over %s in %s of %lld (%s)\n", r->loss, exp(r->loss),
               base_format_counted(r->tokens, "token", tokens),
               base_format_counted(r->windows, "window", windows),
               (long long)command->options.seq_length, r->ran_in);
        return;
    }
    printf("loss %.6f", r->loss);
    for (int i = 0; i < r->score_count; i++)
        printf(", %s %.6f", r->scores[i].name, r->scores[i].value);
    printf(" over %s (%s)\n", base_format_counted(r->windows, "example", windows), r->ran_in);
}

/* What did the work, with the warnings. */
static json_t *ran_json(const eval_command *command, const sifr_evaluated *r) {
    json_t *ran = json_loads(r->report, 0, NULL);
    if (ran && json_object_set(ran, "notices", command->notes->warnings) == 0) return ran;
    json_decref(ran);
    return NULL;
}

static int print_json(const eval_command *command, const sifr_evaluated *r) {
    json_t *out = json_pack(
        "{s:o, s:o, s:I, s:I, s:I, s:s, s:s, s:o}", "loss", base_json_finite(r->loss), "perplexity",
        base_json_finite(exp(r->loss)), "tokens", (json_int_t)r->tokens, "windows",
        (json_int_t)r->windows, "seq_length", (json_int_t)command->options.seq_length, "precision",
        r->precision, "device", r->device, "seconds", base_json_finite(r->seconds));
    bool whole = out && json_object_set_new(out, "ran", ran_json(command, r)) == 0;
    if (out && !r->has_perplexity) json_object_del(out, "perplexity");
    for (int i = 0; whole && i < r->score_count; i++)
        whole =
            json_object_set_new(out, r->scores[i].name, base_json_finite(r->scores[i].value)) == 0;
    if (!whole) return cli_fail_with("eval", SIFR_NO_MEMORY, "out of memory");
    json_dumpf(out, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(out);
    return SIFR_OK;
}

static int run(eval_command *command) {
    sifr_error error = {0};
    sifr_evaluated result = {.size = sizeof result};
    if (evaluate(command, &result, &error) != SIFR_OK) return cli_fail("eval", &error);
    cli_notes_show(command->notes);
    int code = SIFR_OK;
    if (command->json)
        code = print_json(command, &result);
    else
        print_text(command, &result);
    sifr_text_free(result.report);
    return code;
}

int cli_eval(int argc, char **argv) {
    static const cli_usage usage = {
        .name = "eval",
        .summary = "Computes a model's mean loss per token and perplexity over consecutive windows "
                   "of N\ntokens. Window i reads the tokens iN to iN+N and predicts each from "
                   "those before it.",
        .example = "sifr eval --model gpt2 --data held-out.txt --seq-length 1024"};
    cli_notes notes = {.name = "eval", .keeps_warnings = true};
    eval_command command = {.notes = &notes, .options = {.size = sizeof command.options}};
    cli_option options[CLI_EVALUATE_OPTIONS + CLI_ROW_OPTIONS + 9] = {
        {"data", CLI_LIST, "PATH",
         "text files, directories, globs, token stores, or rows to fine-tune on", &command.data,
         NULL, true},
        {"seq-length", CLI_COUNT, "N", "tokens in a window", &command.options.seq_length, NULL,
         true},
        {"max-windows", CLI_COUNT, "N", "evaluate at most N windows (default: all)",
         &command.options.max_windows, NULL, false},
        {"batch-size", CLI_COUNT, "N",
         "windows evaluated at a time (default: as many as make 4096 tokens)",
         &command.options.batch_size, &command.batch_given, false},
        {"no-special-tokens", CLI_FLAG, NULL,
         "leave out the special tokens that the tokenizer's post-processor adds to each text",
         &command.options.no_special_tokens, NULL, false},
        {"text-column", CLI_TEXT, "NAME", "of a classifier: column of the texts",
         &command.options.text_column, NULL, false},
        {"pair-column", CLI_TEXT, "NAME", "column of the second text of each pair",
         &command.options.pair_column, NULL, false},
        {"label-column", CLI_TEXT, "NAME", "column of the labels", &command.options.label_column,
         NULL, false},
        {"json", CLI_FLAG, NULL, "print one JSON object", &command.json, NULL, false},
    };
    int code;
    cli_row_options(&command.rows, options + 9);
    cli_evaluate_options(&command.read, options + 9 + CLI_ROW_OPTIONS);
    if (!cli_parse(&usage, options, sizeof options / sizeof *options, argc, argv, NULL, &code))
        return code;
    if (command.json) notes.warnings = json_array();
    code = run(&command);
    json_decref(notes.warnings);
    cli_list_free(&command.data);
    cli_rows_free(&command.rows);
    return code;
}
