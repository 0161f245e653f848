/* A whole training run: from a resolved-to-be config to a model folder. */
#ifndef TRAIN_LOOP_H
#define TRAIN_LOOP_H

#include "train/config.h"
#include "train/host.h"

typedef struct train_outcome {
    int64_t first_step, steps, total_steps; /* steps: done in all, resumed ones included */
    int64_t tokens;                         /* of this process's steps */
    int64_t skipped;
    double loss;            /* of the last record; NaN: none */
    double eval_loss;       /* NaN: none */
    double seconds;         /* of steps, saving and evaluation */
    double step_seconds;    /* of steps alone */
    int64_t planned_bytes;  /* of the engine */
    int64_t measured_bytes; /* anonymous memory of the process beyond its baseline */
    int64_t baseline_bytes; /* anonymous memory before anything was loaded */
    int signal;             /* that stopped the run after it saved; 0: none */
} train_outcome;

/* Trains as `config` says (every flag set, not resolved yet) and leaves in config->output:
 * the model folder, sifr_config.json (the effective config), metrics.jsonl and .csv, checkpoints.
 * Wrong input is refused before the output is touched. SIFR_OK with outcome->signal where the host
 * asked to stop: a checkpoint of that step is then there. */
sifr_status train_run(train_config *config, const train_host *host, train_outcome *outcome,
                      sifr_error *error) SIFR_MUST_CHECK;

#endif
