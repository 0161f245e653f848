/* A run's records as transformers' log_history has them, kept small: a few numbers each. Above
 * TRAIN_HISTORY_MOST records, or TRAIN_HISTORY_BYTES, every second one goes; those of evaluations
 * only where they are most of them. */
#ifndef TRAIN_HISTORY_H
#define TRAIN_HISTORY_H

#include <jansson.h>
#include <stdint.h>

#include "base/errors.h"

enum { TRAIN_HISTORY_MOST = 20000, TRAIN_HISTORY_BYTES = 1 << 20 };

typedef struct train_history { /* {0}: empty */
    double *numbers;           /* of all records, one behind the other */
    size_t used, capacity;
    size_t count, evaluations;
    int64_t last_step; /* of an evaluation; -1 with none */
    double last_loss;  /* likewise; NaN with none */
    /* Where the record after the last one that train_history_entry made begins. */
    size_t next_index, next_at;
} train_history;

void train_history_begin(train_history *history);
void train_history_free(train_history *history);

/* Keeps what log_history has of a record, an object with "step". */
sifr_status train_history_add(train_history *history, const json_t *record,
                              sifr_error *error) SIFR_MUST_CHECK;

/* A record as log_history has it: a new object, or NULL if memory ran out. `user`: the history. In
 * order each takes constant time. */
json_t *train_history_entry(void *user, size_t index);

#endif
