/* Sends a run's spool to MLflow's server, from where it stopped. */
#ifndef TRAIN_PUSH_H
#define TRAIN_PUSH_H

#include <stdint.h>

#include "base/errors.h"
#include "train/send/mlflow_server.h"

typedef struct train_push train_push;

/* What this process has sent; what the server refuses for good is passed over, and counted. */
typedef struct train_pushed {
    int64_t metrics, parameters, tags, artifacts;
    int64_t refused;    /* of these, also by earlier processes (spool.sent.json) */
    int64_t passed;     /* lines of the spool that are none */
    sifr_error refusal; /* the first of this process, else of an earlier one */
    bool ended;         /* the run's end has been sent */
} train_pushed;

/* Takes the server. Opens the spool in the folder `run`. */
sifr_status train_push_open(const char *run, train_mlflow *server, train_push **out,
                            sifr_error *error) SIFR_MUST_CHECK;
void train_push_close(train_push *push); /* harmless on NULL */

/* Sends what lies before the byte `until` of the spool. SIFR_FAILED: the server does not take it
 * now; a later call goes on with what it lacks. */
sifr_status train_push_go(train_push *push, int64_t until, sifr_error *error) SIFR_MUST_CHECK;

int64_t train_push_sent(const train_push *push); /* bytes of the spool */
const train_pushed *train_push_counts(const train_push *push);
train_mlflow *train_push_server(train_push *push);

#endif
