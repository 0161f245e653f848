/* A page of HTML that shows runs: what `sifr report` writes. It reads what runs leave in their
 * output folders, runs nothing and needs no network; nor does the page.
 *
 *     const char *runs[] = {"out"};
 *     sifr_report_options options = {.size = sizeof options, .runs = runs, .run_count = 1,
 *                                    .output = "out/report.html"};
 *     sifr_reported result = {.size = sizeof result};
 *     sifr_report(context, &options, &result, &error);
 */
#ifndef SIFR_REPORT_H
#define SIFR_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include "sifr/context.h"
#include "sifr/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sifr_report_options {
    size_t size;             /* sizeof(sifr_report_options) */
    const char *const *runs; /* [run_count] output folders of runs */
    size_t run_count;        /* at least 1 */
    const char *trace;  /* the trace of the only run; NULL: trace.json in each folder, if any */
    const char *output; /* the page; a file of that name is replaced */
} sifr_report_options;

typedef struct sifr_reported {
    size_t size;     /* sizeof(sifr_reported), set by the caller */
    int64_t runs;    /* folders that the page shows */
    int64_t unread;  /* folders that could not be read: the context's log and the page name them */
    int64_t records; /* lines of their logs */
    int64_t bytes;   /* of the page: at most 5 MiB */
} sifr_reported;

/* Memory and page are bounded for runs of any length; what is thinned or left out is said in the
 * page. SIFR_USAGE: an option that is wrong. SIFR_FAILED: no folder can be read, or the page cannot
 * be written. */
SIFR_API sifr_status sifr_report(sifr_context *context, const sifr_report_options *options,
                                 sifr_reported *out, sifr_error *error) SIFR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
