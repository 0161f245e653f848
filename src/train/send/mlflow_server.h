/* MLflow's REST interface (2.0), as far as a run needs it. Who logs in, and where to, is said by
 * the environment, in MLflow's own variables; none of it is stored or shown. */
#ifndef TRAIN_MLFLOW_SERVER_H
#define TRAIN_MLFLOW_SERVER_H

#include <jansson.h>
#include <stdint.h>

#include "base/errors.h"
#include "train/send/http.h"

typedef struct train_mlflow train_mlflow;

enum { /* MLflow's limits of one call */
       TRAIN_MLFLOW_METRICS = 1000,
       TRAIN_MLFLOW_PARAMETERS = 100,
       TRAIN_MLFLOW_TAGS = 100,
       TRAIN_MLFLOW_BYTES = 900000, /* of metrics in a request, which may have 1 MB */
       TRAIN_MLFLOW_KEY = 250,
       TRAIN_MLFLOW_VALUE = 6000
};

/* `uri`: NULL for MLFLOW_TRACKING_URI. SIFR_USAGE for one that is no server's, and where none is
 * given; SIFR_FAILED without libcurl. */
sifr_status train_mlflow_open(const char *uri, train_mlflow **out,
                              sifr_error *error) SIFR_MUST_CHECK;
void train_mlflow_close(train_mlflow *server); /* harmless on NULL */
train_http *train_mlflow_http(train_mlflow *server);

/* The calls below: SIFR_FAILED where the server does not answer, refuses the login, or is not able
 * to take anything now, so that the same call may succeed later; SIFR_USAGE where it refuses what
 * it was sent. */

/* A run by the tag sifr.run, which has `id`. */
typedef struct train_mlflow_run {
    const char *id, *name;
    /* Of the time when it began; NULL: none. MLFLOW_EXPERIMENT_NAME and _ID of now come first, and
     * "Default" last. */
    const char *experiment, *experiment_id;
    int64_t began;     /* milliseconds since 1970 */
    const char *known; /* its id there, from an earlier time; NULL: none */
} train_mlflow_run;

/* Finds the run: the one of MLFLOW_RUN_ID, else the known one, else the one with its tag; makes it
 * where there is none. */
sifr_status train_mlflow_find(train_mlflow *server, const train_mlflow_run *run,
                              sifr_error *error) SIFR_MUST_CHECK;
const char *train_mlflow_run_id(const train_mlflow *server);
/* Where the run's artefacts are kept: "mlflow-artifacts:/0/…". */
const char *train_mlflow_artifacts(const train_mlflow *server);

/* One batch: `metrics` are texts of JSON objects with commas between; objects of the others have
 * texts as values. What is NULL is not sent. */
sifr_status train_mlflow_metrics(train_mlflow *server, const char *metrics,
                                 sifr_error *error) SIFR_MUST_CHECK;
sifr_status train_mlflow_parameters(train_mlflow *server, json_t *parameters,
                                    sifr_error *error) SIFR_MUST_CHECK;
sifr_status train_mlflow_tags(train_mlflow *server, json_t *tags,
                              sifr_error *error) SIFR_MUST_CHECK;
/* RUNNING, or one of its ends with its time. */
sifr_status train_mlflow_state(train_mlflow *server, const char *state, int64_t time,
                               sifr_error *error) SIFR_MUST_CHECK;
/* The file `name` of the run, open for reading. SIFR_USAGE also for a store that is not the
 * server's own proxy. */
sifr_status train_mlflow_artifact(train_mlflow *server, const char *name, int file, uint64_t bytes,
                                  sifr_error *error) SIFR_MUST_CHECK;

#endif
