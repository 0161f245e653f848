/* sifr report: a page of HTML that shows runs. */
#include <stdio.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "sifr/report.h"

static const cli_usage usage = {
    .name = "report",
    .operands = "RUN…",
    .summary =
        "Writes a page of HTML that shows runs, each named by its output folder: curves side "
        "by side,\ntables, config, machine, checkpoints, and the timeline of traced steps. "
        "The page is one file,\nwhich needs no network. A run may be going on.",
    .example = "sifr report out\nsifr report runs/* --output runs.html",
};

static sifr_status report(sifr_report_options *options, sifr_error *error) {
    sifr_reported made = {.size = sizeof made};
    sifr_context *context;
    char runs[80], records[80], bytes[32];
    BASE_TRY(cli_context(usage.name, &context, error));
    sifr_status status = sifr_report(context, options, &made, error);
    sifr_context_free(context);
    if (status == SIFR_OK)
        printf("%s: %s, %s, %s\n", options->output, base_format_counted(made.runs, "run", runs),
               base_format_counted(made.records, "record", records),
               base_format_bytes((uint64_t)made.bytes, bytes));
    return status;
}

int cli_report(int argc, char **argv) {
    sifr_report_options made = {.size = sizeof made, .output = "report.html"};
    const cli_option options[] = {
        {"output", CLI_TEXT, "FILE", "the page; default: report.html", &made.output, NULL, false},
        {"trace", CLI_TEXT, "FILE",
         "what `sifr train --trace` wrote, of one run; default: trace.json in each folder",
         &made.trace, NULL, false},
    };
    cli_list runs = {0};
    sifr_error error = {0};
    int code;
    if (!cli_parse(&usage, options, 2, argc, argv, &runs, &code)) return code;
    made.runs = runs.items;
    made.run_count = runs.count;
    code = report(&made, &error) == SIFR_OK ? SIFR_OK : cli_fail(usage.name, &error);
    cli_list_free(&runs);
    return code;
}
