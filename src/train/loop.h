/* A whole training run: from a config with all flags set to a model folder. */
#ifndef TRAIN_LOOP_H
#define TRAIN_LOOP_H

#include "comm/comm.h"
#include "config/config.h"
#include "engine/groups.h"
#include "train/report/callbacks.h"
#include "train/report/ran.h"

/* Planned bytes. */
typedef struct train_planned {
    int64_t gathered, reduced, received, exchanged;
} train_planned;

/* Bytes that steps moved to the first rank, measured and planned; without evaluation, loading and
 * saving. */
typedef struct train_wire {
    comm_ledger ledger;
    train_planned planned;
    /* The same by span of the mesh, if there are several groups. */
    struct {
        plan_span span;
        comm_ledger ledger;
        train_planned planned;
    } of[ENGINE_GROUPS];
    int groups; /* spans in `of` */
} train_wire;

/* Memory of the first rank's process by class: what is in memory of the places that the classes
 * have at the peak of a step, as the system counts it after the last step. The rows add up to
 * `process`. */
typedef struct train_resident {
    bool known;
    char why[SIFR_ERROR_LENGTH]; /* not known: why; empty: the run has not come to its end */
    int64_t classes[PLAN_CLASSES], gaps; /* of the block */
    int64_t rest;                        /* program, libraries, MPI, files in memory */
    int64_t process;                     /* at its most */
} train_resident;

typedef struct train_outcome {
    int32_t ranks;
    int64_t first_step, steps, total_steps; /* steps done in all, including those before a resume */
    int64_t tokens;                         /* of this run's steps */
    int64_t skipped;
    double loss;                           /* from the last record; NaN: none */
    double eval_loss;                      /* NaN: none */
    bool classifies;                       /* which has no perplexity */
    double seconds;                        /* time of steps, saving and evaluation */
    double step_seconds;                   /* of steps alone */
    int64_t planned_bytes;                 /* of the engine, one rank's */
    int64_t planned_classes[PLAN_CLASSES]; /* of it, at the peak of a step */
    int64_t measured_bytes; /* anonymous memory beyond the baseline, the largest of the ranks' */
    int64_t baseline_bytes; /* anonymous memory before the block was taken */
    train_resident resident;
    train_wire wire;
    train_ran ran;
    bool alone; /* the failure is this rank's own; the other ranks know only that it has left */
    int signal; /* signal that stopped the run after saving; 0: none */
} train_outcome;

/* All ranks of `group` call it with the same config, and get the same status; the message is that
 * of the first rank that failed, unless the group itself failed (SIFR_LOST_RANK).
 *
 * Trains as `config` says (every flag set, not resolved yet) and writes to config->output: the
 * model folder, sifr_config.json (the effective config), metrics.jsonl and .csv, summary.json, and
 * checkpoints.
 * Wrong input is refused before the output is touched. SIFR_OK with outcome->signal if the host
 * asked to stop; then there is a checkpoint of that step. */
sifr_status train_run(sifr_config *config, comm_group *group, const train_host *host,
                      train_outcome *outcome, sifr_error *error) SIFR_MUST_CHECK;

#endif
