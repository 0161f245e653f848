#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/options.h"
#include "cli/train_flags.h"
#include "comm/launcher.h"
#include "train/loop.h"

static const cli_usage usage = {
    "train", NULL,
    "Trains a model of a Hugging Face folder on text or token stores, and leaves a Hugging Face\n"
    "folder, checkpoints and the run's figures in the output. All options but --config, --dry-run\n"
    "and --json may also stand in the config, under \"sifr\"; options win.",
    "sifr train --config ds.json --model gpt2 --data books/ --output out --max-steps 1000\n"
    "sifr train --config ds.json --model gpt2 --data books/ --output out --max-steps 2000 "
    "--resume"};

enum { EXTRA = 3 };

typedef struct train_command {
    cli_train_flags flags;
    cli_option options[CLI_TRAIN_FLAGS + EXTRA];
    const char *config;
    bool dry_run, json;
} train_command;

static size_t make_options(train_command *command) {
    size_t used = 0;
    command->options[used++] = (cli_option){.name = "config",
                                            .kind = CLI_TEXT,
                                            .argument = "FILE",
                                            .help = "DeepSpeed's JSON config",
                                            .value = &command->config};
    used += cli_train_flags_make(&command->flags, command->options + used);
    command->options[used++] =
        (cli_option){.name = "dry-run",
                     .kind = CLI_FLAG,
                     .help = "say of each key of the config what it does, then stop",
                     .value = &command->dry_run};
    command->options[used++] = (cli_option){.name = "json",
                                            .kind = CLI_FLAG,
                                            .help = "results as JSON on standard output",
                                            .value = &command->json};
    return used;
}

static void print_line(void *user, const char *line) {
    (void)user;
    puts(line);
}

/* --- what the run asks of the program --- */

static volatile sig_atomic_t stop_signal; /* set by the handler, read between steps */

static void on_signal(int number) {
    stop_signal = number;
}

static int asked_to_stop(void *user) {
    (void)user;
    return stop_signal;
}

/* The first signal lets the run save and stop; the second ends it at once. */
static void catch_signals(void *user) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    (void)user;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void write_line(void *user, const char *text) {
    fprintf(user, "%s\n", text);
    fflush(user);
}

/* Cut where the terminal ends: a line that wraps could not be replaced. */
static void write_live(void *user, const char *text) {
    struct winsize size = {0};
    int columns = ioctl(fileno(user), TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
    fprintf(user, "\r\033[K%.*s", columns - 1, text);
    fflush(user);
}

/* Information belongs to the run's lines; what goes to standard error is for attention. */
static void log_line(void *user, sifr_log_level level, const char *line) {
    const train_host *host = user;
    if (level == SIFR_LOG_DEBUG) return;
    if (host->live) host->live(host->user, "");
    if (level == SIFR_LOG_INFO) {
        host->line(host->user, line);
        return;
    }
    fflush(stdout);
    fprintf(stderr, "sifr train: warning: %s\n", line);
}

static json_t *number_or_null(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static int print_json(const train_config *config, const train_outcome *o) {
    json_t *result = json_pack(
        "{s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:I, s:I, s:i}", "output",
        config->output, "first_step", (json_int_t)o->first_step, "steps", (json_int_t)o->steps,
        "total_steps", (json_int_t)o->total_steps, "loss", number_or_null(o->loss), "eval_loss",
        number_or_null(o->eval_loss), "eval_perplexity", number_or_null(exp(o->eval_loss)),
        "tokens", (json_int_t)o->tokens, "skipped_steps", (json_int_t)o->skipped, "seconds",
        number_or_null(o->seconds), "tokens_per_second",
        number_or_null((double)o->tokens / o->step_seconds), "planned_bytes",
        (json_int_t)o->planned_bytes, "measured_bytes", (json_int_t)o->measured_bytes, "signal",
        o->signal);
    if (!result) return cli_fail_with("train", SIFR_NO_MEMORY, "out of memory");
    json_dumpf(result, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(result);
    return SIFR_OK;
}

static void print_summary(const train_config *config, const train_host *host,
                          const train_outcome *o) {
    char tokens[32], rate[32], planned[32], measured[32];
    if (o->signal) {
        train_say(host, "stopped by %s after step %lld of %lld; saved, --resume goes on",
                  o->signal == SIGINT ? "SIGINT" : "SIGTERM", (long long)o->steps,
                  (long long)o->total_steps);
        return;
    }
    if (o->steps > o->first_step)
        train_say(host,
                  "done: %lld steps, %s tokens in %.1f s, %s tokens/s; memory %s planned, %s "
                  "measured",
                  (long long)(o->steps - o->first_step), base_format_count(o->tokens, tokens),
                  o->seconds,
                  base_format_count((int64_t)((double)o->tokens / o->step_seconds), rate),
                  base_format_bytes((uint64_t)o->planned_bytes, planned),
                  base_format_bytes((uint64_t)o->measured_bytes, measured));
    if (o->skipped) train_say(host, "steps skipped: %lld", (long long)o->skipped);
    if (isfinite(o->loss)) train_say(host, "loss %.4f", o->loss);
    if (isfinite(o->eval_loss))
        train_say(host, "eval loss %.4f, perplexity %.2f", o->eval_loss, exp(o->eval_loss));
    train_say(host, "model: %s", config->output);
}

static int run(const train_command *command, train_config *config) {
    int ranks = 1;
    if (comm_under_launcher(&ranks) && ranks > 1)
        return cli_fail_with("train", SIFR_USAGE,
                             "started as one of %d ranks; the program does not train over several "
                             "ranks yet: start it without the launcher",
                             ranks);
    FILE *stream = command->json ? stderr : stdout;
    sifr_error error = {0};
    train_outcome outcome;
    train_host host = {.line = write_line,
                       .live = isatty(fileno(stream)) ? write_live : NULL,
                       .begin = catch_signals,
                       .stopped = asked_to_stop,
                       .user = stream};
    sifr_log log = {.write = log_line, .user = &host};
    host.log = &log;
    sifr_status status = train_run(config, &host, &outcome, &error);
    if (status != SIFR_OK) {
        if (host.live) host.live(host.user, "");
        return cli_fail("train", &error);
    }
    print_summary(config, &host, &outcome);
    int code = command->json ? print_json(config, &outcome) : SIFR_OK;
    return outcome.signal ? 128 + outcome.signal : code;
}

static int configure_and_run(const train_command *command) {
    train_config config;
    sifr_error error = {0};
    int code;
    sifr_status status = train_config_create(&config, &error);
    if (status == SIFR_OK && command->config)
        status = train_config_load(&config, command->config, &error);
    if (status == SIFR_OK) status = cli_train_flags_set(&command->flags, &config, &error);
    if (status == SIFR_OK && command->dry_run) {
        status = train_config_resolve(&config, 1, &error);
        train_config_explain(&config, print_line, NULL);
    } else if (status == SIFR_OK) {
        code = run(command, &config);
        train_config_free(&config);
        return code;
    }
    code = status == SIFR_OK ? SIFR_OK : cli_fail("train", &error);
    train_config_free(&config);
    return code;
}

int cli_train(int argc, char **argv) {
    train_command *command = calloc(1, sizeof *command);
    int code;
    if (!command) return cli_fail_with("train", SIFR_NO_MEMORY, "out of memory");
    size_t count = make_options(command);
    if (cli_parse(&usage, command->options, count, argc, argv, NULL, &code)) {
        code = configure_and_run(command);
        cli_train_flags_free(&command->flags);
    }
    free(command);
    return code;
}
