/* sifr log: what a run has kept for other programs. */
#include <stdio.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "sifr/push.h"

static const cli_usage usage = {
    .name = "log push",
    .operands = "RUN",
    .summary =
        "Sends a run, named by its output folder, to MLflow's server: what spool.jsonl keeps of a "
        "run\nwith --mlflow. It goes on where it stopped, and the server keeps one run, however "
        "often it is\nsent. MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and "
        "MLFLOW_TRACKING_PASSWORD, log in.\n"
        "Values that the server refuses are passed over and counted; the exit code is 1 then.",
    .example = "sifr log push out --to http://127.0.0.1:5000",
};

static void print(const char *run, const sifr_pushed *made) {
    char metrics[80], parameters[80], files[80], refused[80];
    printf("%s: run %s: sent %s, %s and %s", run, made->run_id,
           base_format_counted(made->metrics, "metric", metrics),
           base_format_counted(made->parameters, "parameter", parameters),
           base_format_counted(made->artifacts, "file", files));
    if (made->refused)
        printf("; refused: %s", base_format_counted(made->refused, "value", refused));
    else if (!(made->metrics + made->parameters + made->artifacts))
        fputs(": the server has all", stdout);
    putchar('\n');
}

/* *refused: what the server has refused for good, which a warning has named. */
static sifr_status push(const sifr_push_options *options, bool *refused, sifr_error *error) {
    sifr_pushed made = {.size = sizeof made};
    sifr_context *context;
    BASE_TRY(cli_context(usage.name, &context, error));
    sifr_status status = sifr_push(context, options, &made, error);
    sifr_context_free(context);
    if (status == SIFR_OK) print(options->run, &made);
    *refused = made.refused > 0;
    return status;
}

static int run_push(int argc, char **argv) {
    sifr_push_options made = {.size = sizeof made};
    const cli_option options[] = {
        {"to", CLI_TEXT, "URI", "the server's address; default: MLFLOW_TRACKING_URI", &made.to,
         NULL, false},
    };
    cli_list runs = {0};
    sifr_error error = {0};
    bool refused = false;
    int code;
    if (!cli_parse(&usage, options, 1, argc, argv, &runs, &code)) return code;
    code = SIFR_OK;
    made.run = runs.count == 1 ? runs.items[0] : NULL;
    if (!made.run)
        code = cli_fail_with(usage.name, SIFR_USAGE, "name one run, by its output folder");
    else if (push(&made, &refused, &error) != SIFR_OK)
        code = cli_fail(usage.name, &error);
    else if (refused)
        code = SIFR_FAILED;
    cli_list_free(&runs);
    return code;
}

int cli_log_command(int argc, char **argv) {
    static const cli_command commands[] = {
        {"push", "send a run to MLflow's server", run_push},
    };
    return cli_run_command("log", commands, sizeof commands / sizeof *commands, argc, argv);
}
