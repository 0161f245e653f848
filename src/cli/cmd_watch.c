/* sifr watch: follows a run in the terminal. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/terminal_kind.h"
#include "cli/watch/watch_terminal.h"
#include "sifr/watch.h"

static const cli_usage usage = {
    .name = "watch",
    .operands = "RUN",
    .summary = "Follows a run, named by its output folder, in the terminal: curves, time left, "
               "the last events;\nq ends it. A run that is over or has not begun is shown as well. "
               "Where there is no terminal,\nit prints a line at most each second, until the run "
               "is over.",
    .example = "sifr watch out\nsifr watch out --once",
};

enum { LOOK_MS = 250, REDRAW_MS = 1000 };

typedef struct watch_command {
    const char *run;
    bool once;
    sifr_watch *watch;
    sifr_watch_state state;
} watch_command;

static sifr_status look(watch_command *command, sifr_error *error) {
    command->state = (sifr_watch_state){.size = sizeof command->state};
    return sifr_watch_look(command->watch, &command->state, error);
}

/* All that is there now. */
static sifr_status look_through(watch_command *command, sifr_error *error) {
    do {
        BASE_TRY(look(command, error));
    } while (command->state.behind);
    return SIFR_OK;
}

static sifr_status draw(const watch_command *command, cli_window window, const char *foot,
                        char **text, sifr_error *error) {
    const sifr_watch_options options = {.size = sizeof options,
                                        .columns = window.columns,
                                        .rows = window.rows,
                                        .utf8 = cli_shows_utf8(),
                                        .styled = cli_wants_styles(),
                                        .foot = foot};
    return sifr_watch_screen(command->watch, &options, text, error);
}

/* --- on a terminal --- */

/* What is on the screen. */
typedef struct watch_shown {
    char *text;
    cli_window window;
} watch_shown;

/* Only what is another picture is sent. */
static sifr_status show(const watch_command *command, watch_shown *shown, bool anew,
                        sifr_error *error) {
    cli_window window = cli_watch_window();
    char *text;
    BASE_TRY(draw(command, window, "q: end", &text, error));
    bool clear =
        anew || window.columns != shown->window.columns || window.rows != shown->window.rows;
    if (clear || !shown->text || strcmp(text, shown->text) != 0) cli_watch_show(text, clear);
    sifr_text_free(shown->text);
    *shown = (watch_shown){text, window};
    return SIFR_OK;
}

/* *signal: that ended it; 0: a key. */
static sifr_status follow(watch_command *command, int *signal, sifr_error *error) {
    watch_shown shown = {0};
    sifr_status status = SIFR_OK;
    bool again = false;
    cli_watch_begin();
    do {
        status = look(command, error);
        if (status == SIFR_OK) status = show(command, &shown, again, error);
    } while (status == SIFR_OK && !ferror(stdout) &&
             !cli_watch_wait(command->state.behind ? 0 : LOOK_MS, &again));
    *signal = cli_watch_end();
    sifr_text_free(shown.text);
    return status;
}

/* Stays in the terminal where the charts are gone. */
static sifr_status tell(const watch_command *command, sifr_error *error) {
    char *text;
    BASE_TRY(sifr_watch_news(command->watch, &text, error));
    const char *last = text;
    for (const char *at = text; *at; at = strchr(at, '\n') + 1) last = at;
    fputs(last, stdout);
    sifr_text_free(text);
    return SIFR_OK;
}

/* --- as lines --- */

static sifr_status print_news(const watch_command *command, sifr_error *error) {
    char *text;
    BASE_TRY(sifr_watch_news(command->watch, &text, error));
    fputs(text, stdout);
    fflush(stdout);
    sifr_text_free(text);
    return SIFR_OK;
}

/* Waits a second; true: who read the lines has gone, and nothing new may come to find that out. */
static bool is_alone(void) {
    struct pollfd reader = {.fd = STDOUT_FILENO};
    return poll(&reader, 1, REDRAW_MS) > 0 && (reader.revents & (POLLERR | POLLHUP));
}

/* A folder that is away in two looks is not being replaced. */
static sifr_status check_folder(const watch_command *command, int *away, sifr_error *error) {
    bool was_there = *away >= 0;
    if (base_is_directory(command->run))
        *away = 0;
    else if (was_there && ++*away > 1)
        return base_fail(error, SIFR_FAILED,
                         "%s: the folder has gone, so there is nothing more to follow; name the "
                         "output folder of a run",
                         command->run);
    return SIFR_OK;
}

/* Until the run is over, or nobody reads. */
static sifr_status print_lines(watch_command *command, sifr_error *error) {
    int64_t told = -1;
    int away = -1; /* the folder is not there yet */
    BASE_TRY(look_through(command, error));
    if (!command->state.there && !command->state.over)
        fprintf(stderr, "sifr watch: %s: waiting for metrics.jsonl; with --once it ends at once\n",
                command->run);
    for (;;) {
        BASE_TRY(look_through(command, error));
        BASE_TRY(check_folder(command, &away, error));
        if (told != command->state.records || command->state.over)
            BASE_TRY(print_news(command, error));
        told = command->state.records;
        if (command->state.over || command->once || ferror(stdout) || is_alone()) return SIFR_OK;
    }
}

/* --- once --- */

static sifr_status print_once(watch_command *command, sifr_error *error) {
    cli_window window = cli_watch_window();
    char *text;
    BASE_TRY(look_through(command, error));
    if (!command->state.there)
        return base_fail(error, SIFR_FAILED,
                         "%s: no metrics.jsonl yet; name the output folder of a run", command->run);
    if (!cli_draws(stdout)) return print_news(command, error);
    window.rows--; /* of the shell's next line */
    BASE_TRY(draw(command, window, NULL, &text, error));
    fputs(text, stdout);
    sifr_text_free(text);
    return SIFR_OK;
}

static sifr_status watch(watch_command *command, int *signal, sifr_error *error) {
    if (command->once) return print_once(command, error);
    if (!cli_draws(stdout)) return print_lines(command, error);
    BASE_TRY(follow(command, signal, error));
    return tell(command, error);
}

static sifr_status open_and_watch(watch_command *command, int *signal, sifr_error *error) {
    sifr_context *context;
    BASE_TRY(cli_context(usage.name, &context, error));
    sifr_status status = sifr_watch_open(context, command->run, &command->watch, error);
    if (status == SIFR_OK) status = watch(command, signal, error);
    sifr_watch_close(command->watch);
    sifr_context_free(context);
    return status;
}

int cli_watch(int argc, char **argv) {
    watch_command command = {0};
    const cli_option options[] = {
        {"once", CLI_FLAG, NULL, "show what there is now, and end", &command.once, NULL, false},
    };
    cli_list runs = {0};
    sifr_error error = {0};
    int code, signal = 0;
    if (!cli_parse(&usage, options, 1, argc, argv, &runs, &code)) return code;
    if (runs.count == 1) {
        command.run = runs.items[0];
        code = open_and_watch(&command, &signal, &error) == SIFR_OK ? SIFR_OK
                                                                    : cli_fail(usage.name, &error);
        if (code == SIFR_OK && signal) code = 128 + signal;
    } else {
        code = cli_fail_with(usage.name, SIFR_USAGE,
                             runs.count ? "several runs are given; name one, or see them side by "
                                          "side with `sifr report`"
                                        : "no run is given; name the output folder of one");
    }
    cli_list_free(&runs);
    return code;
}
