#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/help.h"
#include "cli/launch/launch.h"
#include "cli/launch/stop_signals.h"
#include "cli/launch/watch_rank.h"
#include "cli/options.h"
#include "cli/ran_json.h"
#include "cli/standard_output.h"
#include "cli/train_flags.h"
#include "comm/cores.h"
#include "comm/launcher.h"
#include "train/loop.h"
#include "train/prepare/agreement.h"

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

static int asked_to_stop(void *user) {
    (void)user;
    return cli_stop_asked();
}

static void catch_signals(void *user, int64_t step, int64_t total) {
    (void)user, (void)step, (void)total;
    cli_catch_stop_signals();
}

static void write_line(void *user, const char *text) {
    fprintf(user, "%s\n", text);
    fflush(user);
}

static int live_columns(void *user) {
    return cli_columns(user);
}

/* The line is cut at the terminal's width, since a wrapped line could not be replaced. */
static void write_live(void *user, const char *text) {
    fprintf(user, "\r\033[K%.*s", cli_columns(user) - 1, text);
    fflush(user);
}

typedef struct train_lines {
    const train_host *host;
    json_t *notices;
} train_lines;

/* Information goes to the run's lines; standard error is for warnings and errors. */
static void log_line(void *user, sifr_log_level level, const char *line) {
    const train_lines *lines = user;
    const train_host *host = lines->host;
    if (level == SIFR_LOG_DEBUG) return;
    cli_keep_notice(lines->notices, level, line);
    if (host->live) host->live(host->user, "");
    if (level == SIFR_LOG_INFO) {
        host->line(host->user, line);
        return;
    }
    fflush(stdout);
    fprintf(stderr, "sifr train: warning: %s\n", line);
}

/* Before there is a run, and of what ranks say by themselves. */
static void log_early(void *user, sifr_log_level level, const char *line) {
    sifr_log log = cli_log("train");
    cli_keep_notice(user, level, line);
    log.write(log.user, level, line);
}

/* --- output --- */

static json_t *describe_ledger(const comm_ledger *ledger, int64_t gathered, int64_t reduced,
                               int64_t received) {
    static const char *const names[COMM_OPERATIONS] = {"gathered", "reduced", "control", "sent",
                                                       "received"};
    const int64_t planned[COMM_OPERATIONS] = {gathered, reduced, -1, -1, received};
    json_t *result = json_object();
    for (int o = 0; o < COMM_OPERATIONS; o++) {
        if (o >= COMM_SEND && !ledger->operation[o].calls) continue; /* without stages */
        json_t *entry = json_pack(
            "{s:I, s:I, s:I, s:f}", "calls", (json_int_t)ledger->operation[o].calls, "bytes",
            (json_int_t)ledger->operation[o].bytes, "crossed",
            (json_int_t)ledger->operation[o].crossed, "seconds", ledger->operation[o].seconds);
        if (planned[o] >= 0)
            json_object_set_new(entry, "planned", json_integer((json_int_t)planned[o]));
        json_object_set_new(result, names[o], entry);
    }
    return result;
}

/* Bytes that steps moved to the first rank; of a mesh also by group. */
static json_t *describe_wire(const train_wire *wire) {
    json_t *result = describe_ledger(&wire->ledger, wire->planned_gathered, wire->planned_reduced,
                                     wire->planned_received);
    json_t *groups = json_object();
    for (int i = 0; i < wire->groups; i++)
        json_object_set_new(groups, plan_span_name(wire->of[i].span),
                            describe_ledger(&wire->of[i].ledger, wire->of[i].planned_gathered,
                                            wire->of[i].planned_reduced,
                                            wire->of[i].planned_received));
    if (wire->groups > 1) json_object_set(result, "groups", groups);
    json_decref(groups);
    return result;
}

static int print_json(const train_command *command, const sifr_config *config,
                      const train_outcome *o) {
    json_t *result = json_pack(
        "{s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:i}", "output",
        config->output, "first_step", (json_int_t)o->first_step, "steps", (json_int_t)o->steps,
        "total_steps", (json_int_t)o->total_steps, "loss", base_json_finite(o->loss), "eval_loss",
        base_json_finite(o->eval_loss), "eval_perplexity",
        base_json_finite(o->classifies ? NAN : exp(o->eval_loss)), "tokens", (json_int_t)o->tokens,
        "skipped_steps", (json_int_t)o->skipped, "seconds", base_json_finite(o->seconds),
        "tokens_per_second", base_json_finite((double)o->tokens / o->step_seconds), "planned_bytes",
        (json_int_t)o->planned_bytes, "measured_bytes", (json_int_t)o->measured_bytes,
        "baseline_bytes", (json_int_t)o->baseline_bytes, "signal", o->signal);
    if (!result || json_object_set_new(result, "ranks", json_integer(o->ranks)) != 0 ||
        json_object_set_new(result, "ran", cli_ran_json(&o->ran, command->notices)) != 0 ||
        json_object_set_new(result, "wire", describe_wire(&o->wire)) != 0)
        return cli_fail_with("train", SIFR_NO_MEMORY, "out of memory");
    json_dumpf(result, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(result);
    return SIFR_OK;
}

static void print_summary(const sifr_config *config, const train_host *host,
                          const train_outcome *o) {
    char steps[80], tokens[32], rate[32], planned[32], measured[32];
    if (o->signal) {
        train_say(host, "stopped by %s after step %lld of %lld; saved, continue with --resume",
                  cli_stop_name(o->signal), (long long)o->steps, (long long)o->total_steps);
        return;
    }
    if (o->steps > o->first_step)
        train_say(host,
                  "done: %s, %s tokens in %.1f s, %s tokens/s; memory %s planned, %s "
                  "measured",
                  base_format_counted(o->steps - o->first_step, "step", steps),
                  base_format_count(o->tokens, tokens), o->seconds,
                  base_format_count((int64_t)((double)o->tokens / o->step_seconds), rate),
                  base_format_bytes((uint64_t)o->planned_bytes, planned),
                  base_format_bytes((uint64_t)o->measured_bytes, measured));
    if (o->skipped) train_say(host, "steps skipped: %lld", (long long)o->skipped);
    if (isfinite(o->loss)) train_say(host, "loss %.4f", o->loss);
    if (isfinite(o->eval_loss))
        train_say(host, o->classifies ? "eval loss %.4f" : "eval loss %.4f, perplexity %.2f",
                  o->eval_loss, exp(o->eval_loss));
    train_say(host, "model: %s", config->output);
}

static int print_outcome(const train_command *command, const sifr_config *config,
                         const train_host *host, const train_outcome *outcome) {
    print_summary(config, host, outcome);
    return command->json ? print_json(command, config, outcome) : SIFR_OK;
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
static sifr_status gather_notices(comm_group *group, json_t *notices, sifr_error *error) {
    char mine[NOTICE_BYTES], *all;
    int32_t ranks = comm_size(group);
    if (ranks == 1) return SIFR_OK;
    sifr_status status = base_alloc((size_t)ranks, NOTICE_BYTES, &all, error);
    BASE_TRY(comm_agree_status(group, status, error));
    list_notices(notices, mine);
    status = comm_all_gather_control(group, mine, NOTICE_BYTES, all, error);
    for (int32_t r = 1; r < ranks && status == SIFR_OK && comm_rank(group) == 0; r++)
        append_notices(notices, r, all + (size_t)r * NOTICE_BYTES);
    free(all);
    return status;
}

static void say_cores(const comm_cores *cores, train_host *host) {
    if (cores->sharers == cores->here)
        train_say(host, "cores: %d rank%s of this host share%s %d", cores->here,
                  cores->here == 1 ? "" : "s", cores->here == 1 ? "s" : "", cores->cores);
    else if (cores->sharers == 1)
        train_say(host, "cores: the first of this host's %d ranks has %d of its own", cores->here,
                  cores->cores);
    else
        train_say(host, "cores: %d of this host's %d ranks share %d", cores->sharers, cores->here,
                  cores->cores);
    if (cores->idle > 0)
        train_say(host,
                  "cores: %d of this host stay idle because the launcher bound the ranks to "
                  "others; `%s` uses all",
                  cores->idle,
                  comm_started_by_srun() ? "srun --cpu-bind=none" : "mpirun --bind-to none");
}

/* Prints which cores each rank uses, and how many threads that gives. */
static sifr_status share_cores(comm_group *group, train_host *host, sifr_error *error) {
    comm_cores cores;
    BASE_TRY(comm_divide_cores(group, &cores, error));
    comm_settle(&cores);
    host->threads = cores.threads;
    host->ranks_per_node = cores.per_node;
    host->ranks_per_switch = cores.per_switch;
    if (comm_size(group) > 1 && comm_rank(group) == 0) say_cores(&cores, host);
    return SIFR_OK;
}

/* *code: of a run that did what it should. */
static sifr_status run(const train_command *command, sifr_config *config, comm_group *group,
                       bool *alone, int *code, sifr_error *error) {
    FILE *stream = command->json ? stderr : stdout;
    train_outcome outcome;
    train_host host = {.line = write_line,
                       .live = cli_is_terminal(stream) ? write_live : NULL,
                       .columns = live_columns,
                       .begin = catch_signals,
                       .stopped = asked_to_stop,
                       .user = stream};
    train_lines lines = {.host = &host, .notices = command->notices};
    sifr_log log = {.write = log_line, .user = &lines};
    host.log = &log;
    bool first = comm_rank(group) == 0;
    sifr_status status = share_cores(group, &host, error);
    if (status != SIFR_OK) return status;
    status = train_run(config, group, &host, &outcome, error);
    *alone = outcome.alone;
    if (status == SIFR_OK && command->json) status = gather_notices(group, command->notices, error);
    if (status != SIFR_OK) {
        if (first && host.live) host.live(host.user, "");
        return status;
    }
    *code = first ? print_outcome(command, config, &host, &outcome) : SIFR_OK;
    if (outcome.signal) *code = 128 + outcome.signal;
    return SIFR_OK;
}

/* A rank that was asked to save waits for the others, and cannot without them. */
static void say_not_saved(sifr_error *error) {
    int asked = cli_stop_asked();
    if (error->status == SIFR_LOST_RANK && asked)
        base_set_error_in(error, error->status, "asked to stop by %s, and could not save",
                          cli_stop_name(asked));
}

/* If all ranks have the same result, only the first one prints it; it may be the lost one. */
static int fail_on_rank(const comm_group *group, bool alone, const sifr_error *error) {
    if (comm_size(group) == 1) return cli_fail("train", error);
    if (alone || error->status == SIFR_LOST_RANK)
        return cli_fail_with("train", error->status, "rank %d: %s", comm_rank(group),
                             error->message);
    return comm_rank(group) == 0 ? cli_fail("train", error) : (int)error->status;
}

static sifr_status configure(const train_command *command, sifr_config *config, sifr_error *error) {
    BASE_TRY(config_create(config, error));
    if (command->config) BASE_TRY(config_load(config, command->config, error));
    return cli_train_flags_set(&command->flags, config, error);
}

/* The start counts too, and this rank's config tells its limit before ranks can agree on anything.
 * A config that is wrong is refused later, by all. */
static int64_t start_limit(const train_command *command) {
    enum { DEFAULT = 1800 };
    sifr_config config;
    sifr_error error;
    int ranks = 1;
    comm_under_launcher(&ranks);
    sifr_status status = configure(command, &config, &error);
    if (status == SIFR_OK) status = config_resolve(&config, ranks, &error);
    int64_t limit = status == SIFR_OK ? config.collective_timeout : DEFAULT;
    config_free(&config);
    return limit;
}

static void start_late(void *user, bool last, const char *line) {
    (void)user;
    cli_start_late("train", last, line);
}

static sifr_status open_group(const sifr_log *log, int64_t limit, comm_group **group,
                              sifr_error *error) {
    const comm_options options = {.log = log,
                                  .start = {.limit = (double)limit, .late = start_late}};
    int ranks = 1;
    if (comm_under_launcher(&ranks) && ranks > 1) return comm_open_mpi_with(&options, group, error);
    return comm_open_self(group, error);
}

/* Runs as one of the ranks, or as the only one. */
static int train(const train_command *command) {
    sifr_config config;
    comm_group *group;
    sifr_error error = {0};
    bool alone = false;
    cli_watch_rank("train");
    cli_outlive_readers();
    sifr_log log = {.write = log_early, .user = command->notices};
    sifr_status status = open_group(&log, start_limit(command), &group, &error);
    if (status == SIFR_USAGE) return cli_fail_once("train", &error);
    if (status != SIFR_OK) return cli_fail("train", &error);
    status = configure(command, &config, &error);
    sifr_status same = train_agree_program(group, &error);
    status = same == SIFR_OK ? comm_agree_status(group, status, &error) : same;
    int code = SIFR_OK;
    if (status == SIFR_OK) status = run(command, &config, group, &alone, &code, &error);
    /* Not by error.status: a failure that was put right has left its words there. */
    if (status != SIFR_OK) {
        say_not_saved(&error);
        code = fail_on_rank(group, alone, &error);
    }
    comm_close(group);
    config_free(&config);
    if (code == SIFR_OK) cli_forgive_output("train", false);
    return code;
}

/* Refuses mistakes that this process can see by itself, before any rank starts. */
static int launch(const train_command *command, const cli_launch_choice *choice, int argc,
                  char **argv) {
    sifr_config config;
    sifr_error error = {0};
    sifr_status status = configure(command, &config, &error);
    if (status == SIFR_OK) status = config_resolve(&config, choice->ranks, &error);
    config_free(&config);
    if (status != SIFR_OK) return cli_fail("train", &error);
    cli_outlive_readers();
    return cli_launch(argc, argv, choice);
}

static int explain(const train_command *command, int ranks) {
    sifr_config config;
    sifr_error error = {0};
    if (!cli_speaks()) return SIFR_OK;
    sifr_status status = configure(command, &config, &error);
    if (status == SIFR_OK) {
        status = config_resolve(&config, ranks, &error);
        config_explain(&config, command->dry_run[0] != 0, print_line, NULL);
    }
    config_free(&config);
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
