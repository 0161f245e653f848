/* The state of a training run, shared by prepare.c (up to the first step) and loop.c (steps and the
 * end). Private to them.
 *
 * All ranks run the same code. What only one of them may do, the first one does: it alone prints,
 * logs and writes the output (ranks' parts of checkpoints apart). Where a rank can fail by itself,
 * the ranks agree before the next collective, so that none waits for one that is gone. */
#ifndef TRAIN_RUN_H
#define TRAIN_RUN_H

#include "checkpoint/checkpoint.h"
#include "plan/price/price.h"
#include "train/data/data.h"
#include "train/loop.h"
#include "train/monitor.h"
#include "train/output.h"
#include "train/profile/profile.h"

/* What a rank says between steps. All go on with the first one's word, but for failures and
 * signals, which may come to any of them. */
typedef struct train_word {
    int32_t status, signal, evaluate;
} train_word;

typedef struct train_state {
    sifr_config *config;
    comm_group *group;      /* borrowed */
    const train_host *host; /* the caller's on the first rank, a silent one on the others */
    train_host silent;
    bool first;  /* this is the first rank */
    bool agreed; /* the last agreement was on a failure */
    engine_folder folder;
    sifr_engine *engine;
    train_data *data, *held_out;
    train_output output;
    train_monitor monitor;
    train_profile profile;
    json_t *agree, *notes, *position; /* position: of the checkpoint that was loaded, or NULL */
    json_t *tensors;                  /* of the model that the run ends with */
    train_word *words;                /* of all ranks */
    int32_t *tokens, *labels;         /* of this rank's micro batches */
    int64_t length, total_steps;
    int64_t saved_step; /* of the newest checkpoint; -1: none */
    int skipped_in_row;
    double step_seconds;  /* of steps alone: no saving, no evaluation */
    train_wire wire;      /* of steps alone */
    bool begun;           /* the output is in use */
    plan_machine machine; /* measured: what its limits are */
    uint64_t baseline;    /* memory of the program before anything was loaded */
} train_state;

/* Everything up to the first step, and back to where a checkpoint left off. Wrong input is refused
 * before the output is touched. */
sifr_status train_prepare(train_state *t, sifr_error *error) SIFR_MUST_CHECK;

/* The failure of the first rank that has one, on all ranks; SIFR_OK where none has. */
sifr_status train_agree(train_state *t, sifr_status status, sifr_error *error) SIFR_MUST_CHECK;

#endif
