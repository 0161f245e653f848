#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/columns.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/text.h"
#include "cli/help.h"
#include "cli/keep_notice.h"
#include "cli/launch/launch.h"
#include "cli/launch/stop_signals.h"
#include "cli/launch/watch_rank.h"
#include "cli/options.h"
#include "cli/standard_output.h"
#include "cli/terminal_kind.h"
#include "cli/train_flags.h"
#include "sifr/context.h"
#include "sifr/run.h"

static const cli_usage usage = {
    "train", NULL,
    "Trains a model from a Hugging Face folder on text or token stores. Writes the trained "
    "model\n(a Hugging Face folder), checkpoints and metrics to the output folder. All options "
    "except\n--config, --dry-run and --json can also be given in the config, under \"sifr\" with "
    "their\nown name unless they say another; options win.",
    "sifr train --config ds.json --model gpt2 --data books/ --output out --max-steps 1000\n"
    "sifr train --config ds.json --model gpt2 --data books/ --output out --max-steps 2000 "
    "--resume"};

enum { EXTRA = 4 };

typedef struct train_command {
    cli_train_flags flags;
    cli_option options[CLI_TRAIN_OPTIONS + CLI_LAUNCH_OPTIONS + EXTRA];
    const char *config;
    cli_launch_request launch;
    const char *dry_run; /* NULL, "" or "all" */
    bool json;
    json_t *notices; /* with `json`: this rank's warnings */
} train_command;

static size_t make_options(train_command *command) {
    size_t used = 0;
    command->options[used++] = (cli_option){.name = "Options", .kind = CLI_GROUP};
    command->options[used++] = (cli_option){.name = "config",
                                            .kind = CLI_TEXT,
                                            .argument = "FILE",
                                            .help = "DeepSpeed config (JSON)",
                                            .value = &command->config};
    command->options[used++] =
        (cli_option){.name = "dry-run",
                     .kind = CLI_SWITCH,
                     .argument = "all",
                     .help = "print what each given key does and where defaults differ from "
                             "DeepSpeed's, then stop; =all: print all defaults",
                     .value = &command->dry_run};
    command->options[used++] = (cli_option){.name = "json",
                                            .kind = CLI_FLAG,
                                            .help = "print the results as JSON",
                                            .value = &command->json};
    used += cli_train_flags_make(&command->flags, command->options + used);
    used += cli_launch_options(&command->launch, command->options + used);
    return used;
}

static void print_line(void *user, const char *line) {
    (void)user;
    puts(line);
}

/* --- callbacks of the run --- */

/* Where its lines go. */
typedef struct train_lines {
    FILE *stream;
    bool live;                    /* lines that replace each other can be shown */
    bool running;                 /* on the first rank: the log's lines are among the run's */
    json_t *notices;              /* with --json: this rank's warnings */
    char model[BASE_PATH_LENGTH]; /* the folder that was written */
} train_lines;

static int go_on(void *user, const sifr_train_progress *progress) {
    (void)user;
    if (progress->begins) cli_catch_stop_signals();
    return cli_stop_asked();
}

static void write_line(void *user, const char *text) {
    const train_lines *lines = user;
    fprintf(lines->stream, "%s\n", text);
    fflush(lines->stream);
}

static int live_columns(void *user) {
    const train_lines *lines = user;
    return cli_terminal_columns(lines->stream);
}

/* The line is cut at the terminal's width, since a wrapped line could not be replaced. */
static void write_live(void *user, const char *text) {
    const train_lines *lines = user;
    int bytes = (int)base_fit_columns(text, (size_t)live_columns(user) - 1);
    fprintf(lines->stream, "\r\033[K%.*s", bytes, text);
    fflush(lines->stream);
}

static void clear_live(train_lines *lines) {
    if (lines->live) write_live(lines, "");
}

static int note_saved(void *user, const sifr_train_save *save) {
    train_lines *lines = user;
    if (save->model) snprintf(lines->model, sizeof lines->model, "%s", save->path);
    return 0;
}

/* Information goes to the run's lines; standard error is for warnings and errors, and for what
 * there is to say before there is a run, or by another rank. */
static void log_line(void *user, sifr_log_level level, const char *line) {
    train_lines *lines = user;
    if (level == SIFR_LOG_DEBUG) return;
    cli_keep_notice(lines->notices, level, line);
    if (!lines->running) {
        sifr_log log = cli_log("train");
        log.write(log.user, level, line);
        return;
    }
    clear_live(lines);
    if (level == SIFR_LOG_INFO) {
        write_line(lines, line);
        return;
    }
    fflush(stdout);
    fprintf(stderr, "sifr train: warning: %s\n", line);
}

/* --- output --- */

static int print_json(const train_lines *lines, const sifr_train_outcome *outcome) {
    json_t *report = json_loads(outcome->report, 0, NULL);
    int code = SIFR_OK;
    if (report && json_object_set(json_object_get(report, "ran"), "notices", lines->notices) == 0) {
        json_dumpf(report, stdout, JSON_INDENT(2));
        putchar('\n');
    } else {
        code = cli_fail_with("train", SIFR_NO_MEMORY, "out of memory");
    }
    json_decref(report);
    return code;
}

static void say(train_lines *lines, const char *format, ...) SIFR_PRINTF(2, 3);

static void say(train_lines *lines, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    clear_live(lines);
    write_line(lines, text);
}

static void print_summary(train_lines *lines, const sifr_train_outcome *o) {
    char steps[80], tokens[32], rate[32], planned[32], measured[32];
    if (o->stopped) {
        say(lines, "stopped by %s after step %lld of %lld; saved, continue with --resume",
            cli_stop_name(o->stopped), (long long)o->steps, (long long)o->total_steps);
        return;
    }
    if (o->steps > o->first_step)
        say(lines,
            "done: %s, %s tokens in %.1f s, %s tokens/s without evaluations and saves; memory %s "
            "planned, %s measured",
            base_format_counted(o->steps - o->first_step, "step", steps),
            base_format_count(o->tokens, tokens), o->seconds,
            base_format_count((int64_t)((double)o->tokens / o->step_seconds), rate),
            base_format_bytes((uint64_t)o->planned_bytes, planned),
            base_format_bytes((uint64_t)o->measured_bytes, measured));
    if (o->skipped) say(lines, "steps skipped: %lld", (long long)o->skipped);
    if (isfinite(o->loss)) say(lines, "loss %.4f", o->loss);
    if (isfinite(o->eval_loss))
        say(lines, o->has_perplexity ? "eval loss %.4f, perplexity %.2f" : "eval loss %.4f",
            o->eval_loss, exp(o->eval_loss));
    char model[BASE_PATH_LENGTH * 4];
    say(lines, "model: %s", base_show_text(lines->model, true, model, sizeof model));
}

enum { NOTICE_BYTES = 2048 }; /* of a rank, for the first one */

/* Warnings, each with a line feed, as far as there is room. */
static void list_notices(const json_t *notices, char out[NOTICE_BYTES]) {
    size_t used = 0, index;
    json_t *notice;
    out[0] = '\0';
    json_array_foreach(notices, index, notice) {
        const char *text = json_string_value(notice);
        if (used + strlen(text) + 2 > NOTICE_BYTES) return;
        used += (size_t)snprintf(out + used, NOTICE_BYTES - used, "%s\n", text);
    }
}

static void append_notices(json_t *notices, int32_t rank, char *text) {
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        json_array_append_new(notices, json_sprintf("rank %d: %s", (int)rank, line));
}

/* Puts the other ranks' warnings behind those of the first. All ranks call it. */
static sifr_status gather_notices(sifr_ranks *group, json_t *notices, sifr_error *error) {
    char mine[NOTICE_BYTES], *all;
    int ranks = sifr_ranks_size(group);
    if (ranks == 1) return SIFR_OK;
    sifr_status status = base_alloc((size_t)ranks, NOTICE_BYTES, &all, error);
    BASE_TRY(sifr_ranks_agree(group, status, error));
    list_notices(notices, mine);
    status = sifr_ranks_gather(group, mine, NOTICE_BYTES, all, error);
    for (int r = 1; r < ranks && status == SIFR_OK && sifr_ranks_rank(group) == 0; r++)
        append_notices(notices, r, all + (size_t)r * NOTICE_BYTES);
    free(all);
    return status;
}

/* What a rank runs with. */
typedef struct train_place {
    sifr_context *context;
    sifr_ranks *ranks;
    train_lines lines;
} train_place;

/* *code: of a run that did what it should. */
static sifr_status run(const train_command *command, const sifr_config *config, train_place *place,
                       bool *alone, int *code, sifr_error *error) {
    train_lines *lines = &place->lines;
    bool first = sifr_ranks_rank(place->ranks) == 0;
    const sifr_train_options options = {.size = sizeof options,
                                        .user = lines,
                                        .line = write_line,
                                        .live = lines->live ? write_live : NULL,
                                        .columns = live_columns,
                                        .progress = go_on,
                                        .saved = note_saved,
                                        .report = command->json,
                                        .chart = lines->live && cli_shows_utf8()};
    sifr_train_outcome outcome = {.size = sizeof outcome};
    lines->running = first;
    sifr_status status =
        sifr_train(place->context, config, place->ranks, &options, &outcome, error);
    lines->running = false;
    *alone = outcome.alone;
    if (status == SIFR_OK && command->json)
        status = gather_notices(place->ranks, lines->notices, error);
    if (status == SIFR_OK) {
        *code = SIFR_OK;
        if (first) print_summary(lines, &outcome);
        if (first && command->json) *code = print_json(lines, &outcome);
        if (outcome.stopped) *code = 128 + outcome.stopped;
    } else if (first) {
        clear_live(lines);
    }
    sifr_text_free(outcome.report);
    return status;
}

/* A rank that was asked to save waits for the others, and cannot without them. */
static void say_not_saved(sifr_error *error) {
    int asked = cli_stop_asked();
    if (error->status == SIFR_LOST_RANK && asked)
        base_set_error_in(error, error->status, "asked to stop by %s, and could not save",
                          cli_stop_name(asked));
}

/* If all ranks have the same result, only the first one prints it; it may be the lost one. */
static int fail_on_rank(const sifr_ranks *ranks, bool alone, const sifr_error *error) {
    if (sifr_ranks_size(ranks) == 1) return cli_fail("train", error);
    if (alone || error->status == SIFR_LOST_RANK)
        return cli_fail_with("train", error->status, "rank %d: %s", sifr_ranks_rank(ranks),
                             error->message);
    return sifr_ranks_rank(ranks) == 0 ? cli_fail("train", error) : (int)error->status;
}

/* *out is NULL where it fails. */
static sifr_status configure(const train_command *command, sifr_config **out, sifr_error *error) {
    *out = NULL;
    BASE_TRY(sifr_config_create(out, error));
    sifr_status status = command->config ? sifr_config_load(*out, command->config, error) : SIFR_OK;
    if (status == SIFR_OK) status = cli_train_flags_set(&command->flags, *out, error);
    if (status == SIFR_OK) return SIFR_OK;
    sifr_config_free(*out);
    *out = NULL;
    return status;
}

/* The start counts too, and this rank's config tells its limit before ranks can agree on anything.
 * A config that is wrong is refused later, by all. */
static double start_limit(const train_command *command) {
    enum { DEFAULT = 1800 };
    sifr_config *config;
    sifr_error error;
    char *text = NULL;
    sifr_status status = configure(command, &config, &error);
    if (status == SIFR_OK) status = sifr_config_resolve(config, sifr_ranks_started(), &error);
    if (status == SIFR_OK) status = sifr_config_value(config, "collective-timeout", &text, &error);
    double limit = status == SIFR_OK ? strtod(text, NULL) : DEFAULT;
    sifr_text_free(text);
    sifr_config_free(config);
    return limit;
}

static void start_late(void *user, bool last, const char *line) {
    (void)user;
    cli_start_late("train", last, line);
}

static sifr_status open_place(const train_command *command, train_place *out, sifr_error *error) {
    FILE *stream = command->json ? stderr : stdout;
    bool live = cli_is_terminal(stream) && !cli_is_dumb();
    out->lines = (train_lines){.stream = stream, .live = live, .notices = command->notices};
    const sifr_context_options context = {.size = sizeof context,
                                          .log = {.write = log_line, .user = &out->lines}};
    const sifr_ranks_options ranks = {
        .size = sizeof ranks, .start_limit = start_limit(command), .late = start_late};
    BASE_TRY(sifr_context_create(&context, &out->context, error));
    return sifr_ranks_open(out->context, &ranks, &out->ranks, error);
}

/* Runs as one of the ranks, or as the only one. *code: the program's exit code. */
static void train_as_rank(const train_command *command, train_place *place, int *code) {
    sifr_config *config;
    sifr_error error = {0};
    bool alone = false;
    sifr_status status = configure(command, &config, &error);
    status = sifr_ranks_agree(place->ranks, status, &error);
    if (status == SIFR_OK) status = run(command, config, place, &alone, code, &error);
    /* Not by error.status: a failure that was put right has left its words there. */
    if (status != SIFR_OK) {
        say_not_saved(&error);
        *code = fail_on_rank(place->ranks, alone, &error);
    }
    sifr_ranks_close(place->ranks);
    sifr_config_free(config);
}

static int train(const train_command *command) {
    train_place place = {0};
    sifr_error error = {0};
    int code = SIFR_OK;
    cli_watch_rank("train");
    cli_outlive_readers();
    sifr_status status = open_place(command, &place, &error);
    if (status == SIFR_OK)
        train_as_rank(command, &place, &code);
    else
        code = status == SIFR_USAGE ? cli_fail_once("train", &error) : cli_fail("train", &error);
    sifr_context_free(place.context);
    if (code == SIFR_OK) cli_forgive_output("train", false);
    return code;
}

/* Refuses mistakes that this process can see by itself, before any rank starts. */
static int launch(const train_command *command, const cli_launch_choice *choice, int argc,
                  char **argv) {
    sifr_config *config;
    sifr_error error = {0};
    sifr_status status = configure(command, &config, &error);
    if (status == SIFR_OK) status = sifr_config_resolve(config, choice->ranks, &error);
    sifr_config_free(config);
    if (status != SIFR_OK) return cli_fail("train", &error);
    cli_outlive_readers();
    return cli_launch(argc, argv, choice);
}

static int explain(const train_command *command, int ranks) {
    sifr_config *config;
    sifr_error error = {0};
    if (!cli_speaks()) return SIFR_OK;
    sifr_status status = configure(command, &config, &error);
    if (status == SIFR_OK)
        status =
            sifr_config_explain(config, ranks, command->dry_run[0] != 0, print_line, NULL, &error);
    sifr_config_free(config);
    int code = status == SIFR_OK ? SIFR_OK : cli_fail("train", &error);
    cli_spoke();
    return code;
}

static int dispatch(const train_command *command, int argc, char **argv) {
    cli_launch_choice choice;
    sifr_error error = {0};
    int code;
    if (command->dry_run && command->dry_run[0] && strcmp(command->dry_run, "all") != 0)
        return cli_fail_with("train", SIFR_USAGE, "--dry-run=%s: give --dry-run or --dry-run=all",
                             command->dry_run);
    if (cli_launch_choose(&command->launch, &choice, &error) != SIFR_OK)
        code = cli_fail_once("train", &error);
    else if (command->dry_run)
        code = explain(command, choice.ranks);
    else if (choice.launch)
        code = launch(command, &choice, argc, argv);
    else
        code = train(command);
    cli_launch_choice_free(&choice);
    return code;
}

int cli_train(int argc, char **argv) {
    train_command *command = calloc(1, sizeof *command);
    int code;
    if (!command) return cli_fail_with("train", SIFR_NO_MEMORY, "out of memory");
    size_t count = make_options(command);
    if (cli_parse(&usage, command->options, count, argc, argv, NULL, &code)) {
        if (command->json) command->notices = json_array();
        code = dispatch(command, argc, argv);
        json_decref(command->notices);
        cli_train_flags_free(&command->flags);
    }
    free(command);
    return code;
}
