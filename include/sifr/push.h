/* Sends a run to MLflow's server: what `sifr log push` does. A run with "sifr": {"mlflow": true}
 * keeps all that goes there in spool.jsonl of its output, whether a server takes it meanwhile or
 * not. The server keeps one run of it, however often it is sent.
 *
 *     sifr_push_options options = {.size = sizeof options, .run = "out"};
 *     sifr_pushed result = {.size = sizeof result};
 *     sifr_push(context, &options, &result, &error);
 */
#ifndef SIFR_PUSH_H
#define SIFR_PUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sifr/context.h"
#include "sifr/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sifr_push_options {
    size_t size;     /* sizeof(sifr_push_options) */
    const char *run; /* output folder of a run */
    const char *to;  /* address of the server; NULL: the environment's MLFLOW_TRACKING_URI */
} sifr_push_options;

typedef struct sifr_pushed {
    size_t size; /* sizeof(sifr_pushed), set by the caller */
    /* What the server has taken by this call: nothing of what it has been sent before. */
    int64_t metrics, parameters, tags, artifacts;
    int64_t refused; /* values and files that it refuses for good, also those of earlier calls: the
                      * context's log says why */
    bool ended;      /* the run's end is sent; else it counts as running there */
    char run_id[64]; /* of the run, there */
} sifr_pushed;

/* Goes on where it, or the run itself, has stopped. The environment says who logs in, in MLflow's
 * own variables. SIFR_USAGE: an address that is none. SIFR_FAILED: no spool, no libcurl, or a
 * server that does not answer: what it has taken until then stays, and counts at the next call. */
SIFR_API sifr_status sifr_push(sifr_context *context, const sifr_push_options *options,
                               sifr_pushed *out, sifr_error *error) SIFR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
