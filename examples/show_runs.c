/* Makes a page of HTML that shows the curves of runs, side by side:
 *     cc show_runs.c $(pkg-config --cflags --libs sifr) -o show_runs
 *     ./show_runs page.html out other-run
 * Explained in docs/report.md. */
#include <inttypes.h>
#include <sifr/sifr.h>
#include <stdio.h>

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: show_runs PAGE RUN…\n");
        return SIFR_USAGE;
    }
    sifr_report_options options = {.size = sizeof options,
                                   .runs = (const char *const *)(argv + 2),
                                   .run_count = (size_t)(argc - 2),
                                   .output = argv[1]};
    sifr_reported result = {.size = sizeof result};
    sifr_context *context = NULL;
    sifr_error error = {0};
    sifr_status status = sifr_context_create(NULL, &context, &error);
    if (status == SIFR_OK) status = sifr_report(context, &options, &result, &error);
    if (status == SIFR_OK)
        printf("%s: %" PRId64 " runs, %" PRId64 " records\n", argv[1], result.runs, result.records);
    else
        fprintf(stderr, "show_runs: %s\n", error.message);
    sifr_context_free(context);
    return (int)status;
}
