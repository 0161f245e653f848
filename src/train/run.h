/* The state of a training run, private to the files that carry it out: prepare.c (up to the first
 * step), loop.c (steps and the end), and those that they call with it.
 *
 * All ranks run the same code. Only the first rank prints, logs and writes the output, except that
 * each rank writes its part of a checkpoint. After a step in which a rank can fail by itself, the
 * ranks agree before the next collective, so that none waits for a rank that has left.
 */
#ifndef TRAIN_RUN_H
#define TRAIN_RUN_H

#include "checkpoint/checkpoint.h"
#include "checkpoint/frozen_base.h"
#include "checkpoint/output.h"
#include "data/data.h"
#include "data/epochs.h"
#include "engine/check/device_choice.h"
#include "plan/price/price.h"
#include "train/loop.h"
#include "train/objective/objectives.h"
#include "train/profile/profile.h"
#include "train/report/monitor.h"
#include "train/report/queue.h"

/* The values that ranks exchange between steps. All use the first rank's, except failures and
 * signals, which may occur on any rank. */
typedef struct train_word {
    int32_t status, signal, evaluate;
} train_word;

typedef struct train_state {
    sifr_config *config;
    comm_group *group;      /* borrowed */
    const train_host *host; /* the caller's log on the first rank, a silent one on the others */
    train_host silent;
    bool first;      /* this is the first rank */
    bool said_slow;  /* the device's notice is printed */
    bool agreed;     /* the ranks have agreed on a failure */
    model_lora lora; /* the adapters that are trained; zeroed: none */
    engine_folder folder;
    engine_device_choice device;
    sifr_engine *engine;
    data_set *data, *held_out;
    checkpoint_output output;
    train_monitor monitor;
    train_queue *queue; /* to sinks that the config asks for; NULL: none */
    train_profile profile;
    json_t *must_match, *may_differ, *defaults; /* of checkpoint_record */
    json_t *position;     /* state of the checkpoint that was loaded, or NULL */
    json_t *tensors;      /* tensors of the model that the run writes at the end */
    checkpoint_base base; /* of frozen weights */
    train_word *words;    /* of all ranks */
    data_rows rows;       /* of this rank's micro batches */
    const train_objective *objective;
    float *measured; /* of an objective that measures steps, as it needs it */
    data_epochs epochs;
    int64_t length, total_steps;
    int64_t saved_step; /* step of the newest checkpoint; -1: none */
    int skipped_in_row;
    double step_seconds;  /* time of steps without saving and evaluation */
    train_wire wire;      /* of steps alone */
    bool begun;           /* the output is in use */
    plan_machine machine; /* the measured limits of this machine */
    uint64_t baseline;    /* memory of the program with its plan, before the block is taken */
} train_state;

/* Prepares everything up to the first step, and restores a checkpoint if the run resumes. Wrong
 * input is refused before the output is touched. */
sifr_status train_prepare(train_state *t, sifr_error *error) SIFR_MUST_CHECK;

/* For a loop that is the caller's: opens the model folder, and makes an engine with its weights as
 * a run would have it. No data, no output. Of *t it takes config, group, host and first. */
sifr_status train_prepare_engine(train_state *t, sifr_error *error) SIFR_MUST_CHECK;

/* Writes into a folder what a model folder has beside weights: its config.json as the run has it,
 * tokenizer, chat template, adapter_config.json. */
sifr_status train_put_folder(train_state *t, const char *path, sifr_error *error) SIFR_MUST_CHECK;

/* Gives back all that the state owns. */
void train_close(train_state *t);

/* Returns the failure of the lowest rank that has one, on all ranks; SIFR_OK if none has. */
sifr_status train_agree(train_state *t, sifr_status status, sifr_error *error) SIFR_MUST_CHECK;

/* Sets measured_bytes and resident of the outcome. All ranks call it, while the engine is there. */
sifr_status train_measure_memory(train_state *t, train_outcome *outcome,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* Writes the average of the weights, where there is one, into the folder TRAIN_AVERAGE of the
 * output. */
#define TRAIN_AVERAGE "ema"
sifr_status train_save_average(train_state *t, sifr_error *error) SIFR_MUST_CHECK;

#endif
