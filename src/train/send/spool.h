/* The spool of a run: OUTPUT/spool.jsonl, the run as it goes to a server, an object a line, in the
 * order in which it is sent. A server that is away misses nothing, and what is sent twice is the
 * same, with the time at which it was measured.
 *
 *   {"spool": 1, "run": ID, "name": "out", "time": MS, "experiment": NAME or null,
 *    "experiment_id": ID or null}      the first line; 1 is TRAIN_SPOOL_VERSION
 *   {"resumed": STEP, "time": MS}      a run that goes on
 *   {"parameters": {KEY: TEXT, …}}     settings
 *   {"tags": {KEY: TEXT, …}}
 *   {"step": N, "time": MS, "metrics": {KEY: NUMBER or "NaN", "Infinity", "-Infinity", …}}
 *   {"artifact": NAME}                 a file of OUTPUT
 *   {"end": "FINISHED", "FAILED" or "KILLED", "time": MS} */
#ifndef TRAIN_SPOOL_H
#define TRAIN_SPOOL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"

#define TRAIN_SPOOL "spool.jsonl"
#define TRAIN_SPOOL_SENT "spool.sent.json" /* how much of it a server has */
enum { TRAIN_SPOOL_VERSION = 1, TRAIN_SPOOL_LINE = 1 << 20, TRAIN_SPOOL_ID = 33 };

/* Lines, from any whole line on; the file may grow meanwhile. */
typedef struct train_spool {
    int file;     /* -1: closed; locked, so that one process alone sends it */
    int64_t at;   /* behind the last line that was read */
    int64_t from; /* of the file, in the buffer */
    size_t filled;
    char *buffer;
} train_spool;

/* SIFR_FAILED if the run has none, or if another process sends it. */
sifr_status train_spool_open(train_spool *spool, const char *run,
                             sifr_error *error) SIFR_MUST_CHECK;
void train_spool_close(train_spool *spool);

void train_spool_go_to(train_spool *spool, int64_t at);

/* Whether a line of the file ends there. */
bool train_spool_ends_at(const train_spool *spool, int64_t at);

/* What is wrong with a run's first line. `run`: the folder, for the message. */
sifr_status train_spool_check(const json_t *head, const char *run,
                              sifr_error *error) SIFR_MUST_CHECK;

/* The next whole line before the byte `until`. *out is a new object; NULL where there is none, and
 * where *passed says that it is no object, or has more than TRAIN_SPOOL_LINE bytes. */
sifr_status train_spool_next(train_spool *spool, int64_t until, json_t **out, bool *passed,
                             sifr_error *error) SIFR_MUST_CHECK;

#endif
