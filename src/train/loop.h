/* A whole training run: from a resolved-to-be config to a model folder. */
#ifndef TRAIN_LOOP_H
#define TRAIN_LOOP_H

#include "comm/comm.h"
#include "config/config.h"
#include "train/callbacks.h"

/* What steps moved to the first rank, beside what the plan says of them: bytes. Evaluation, loading
 * and saving apart. */
typedef struct train_wire {
    comm_ledger ledger;
    int64_t planned_gathered, planned_reduced;
} train_wire;

typedef struct train_outcome {
    int32_t ranks;
    int64_t first_step, steps, total_steps; /* steps: done in all, resumed ones included */
    int64_t tokens;                         /* of this run's steps */
    int64_t skipped;
    double loss;            /* of the last record; NaN: none */
    double eval_loss;       /* NaN: none */
    double seconds;         /* of steps, saving and evaluation */
    double step_seconds;    /* of steps alone */
    int64_t planned_bytes;  /* of the engine, one rank's */
    int64_t measured_bytes; /* anonymous memory beyond the baseline, the largest of the ranks' */
    int64_t baseline_bytes; /* anonymous memory before anything was loaded */
    train_wire wire;
    bool alone; /* the failure is this rank's own: the others know no more than that it is gone */
    int signal; /* that stopped the run after it saved; 0: none */
} train_outcome;

/* All ranks of `group` call it with the same config, and get the same status; the message is that
 * of the first rank that failed, unless the group itself failed (SIFR_LOST_RANK).
 *
 * Trains as `config` says (every flag set, not resolved yet) and leaves in config->output:
 * the model folder, sifr_config.json (the effective config), metrics.jsonl and .csv, checkpoints.
 * Wrong input is refused before the output is touched. SIFR_OK with outcome->signal where the host
 * asked to stop: a checkpoint of that step is then there. */
sifr_status train_run(sifr_config *config, comm_group *group, const train_host *host,
                      train_outcome *outcome, sifr_error *error) SIFR_MUST_CHECK;

#endif
