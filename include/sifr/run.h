/* A whole training run, as `sifr train` does it: from a config to a trained model folder, with
 * checkpoints, metrics and evaluations.
 *
 *     sifr_train_outcome outcome = {.size = sizeof outcome};
 *     sifr_train(context, config, ranks, &options, &outcome, &error);
 *
 * The run is of all ranks (sifr/ranks.h), each with the same config. It prints nothing: its log
 * lines go to the context, and what a person reads of it to `line`. It handles no signals: a
 * callback that returns a number other than 0 asks it to save and to stop.
 *
 * Callbacks are called on the thread that called sifr_train, between two steps, and what they are
 * given is valid only during the call. They must not change the config or the output folder.
 */
#ifndef SIFR_RUN_H
#define SIFR_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sifr/config.h"
#include "sifr/context.h"
#include "sifr/ranks.h"
#include "sifr/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sifr_train_progress {
    size_t size; /* of the struct that the library has */
    bool begins; /* true once, before the first step: from now on a request to stop saves first.
                    Until then nothing is asked */
    int64_t step, total_steps; /* steps that are done, with those before a resume, and in all */
} sifr_train_progress;

typedef struct sifr_train_step {
    size_t size;
    int64_t step, total_steps; /* this one, from 1 */
    double loss;               /* mean over the labelled tokens of all ranks */
    int64_t labelled;
    double gradient_norm; /* before clipping */
    double loss_scale;    /* 1 in fp32 and bf16 */
    double learning_rate;
    double seconds;
    bool updated; /* false: the step was skipped, and the weights are as before */
} sifr_train_step;

typedef struct sifr_train_score {
    const char *name; /* "accuracy" */
    double value;     /* NaN: not defined */
} sifr_train_score;

typedef struct sifr_train_evaluation {
    size_t size;
    int64_t step;
    int64_t windows, tokens; /* tokens that have a label; of pairs of answers the pairs */
    double loss;             /* mean over them */
    double seconds;
    const sifr_train_score *scores; /* of labels, or rewards; score_count of them */
    int score_count;
} sifr_train_evaluation;

typedef struct sifr_train_save {
    size_t size;
    bool model; /* the trained model, which is written last; else a checkpoint */
    int64_t step;
    const char *path; /* its folder */
} sifr_train_save;

/* Zeros: nothing is called. What a callback returns asks the run to stop, if it is not 0: the ranks
 * agree on it, the run saves a checkpoint, and the number is outcome->stopped. One rank's callback
 * is enough. */
typedef struct sifr_train_options {
    size_t size; /* sizeof(sifr_train_options) */
    void *user;  /* what callbacks are given */

    /* On the first rank alone. */
    void (*line)(void *user, const char *text); /* a line for a person to read */
    void (*live)(void *user, const char *text); /* replaces the last live line; "": removes it */
    int (*columns)(void *user);                 /* width of the live line; NULL: 80 */

    /* On every rank. */
    /* Before each step and between the micro batches of an evaluation: a place to ask for a stop.
     */
    int (*progress)(void *user, const sifr_train_progress *progress);
    int (*step)(void *user, const sifr_train_step *step);
    int (*evaluation)(void *user, const sifr_train_evaluation *evaluation);
    int (*saved)(void *user, const sifr_train_save *save);

    bool report; /* outcome->report is wanted */
    bool chart;  /* the live line may have a chart of the loss, in braille: UTF-8 */
} sifr_train_options;

typedef struct sifr_train_outcome {
    size_t size; /* sizeof(sifr_train_outcome), set by the caller */
    int ranks;
    int stopped;        /* what the callback returned that stopped the run; 0: it ran to its end */
    int64_t first_step; /* of a resumed run: the steps that were done before */
    int64_t steps, total_steps;
    int64_t tokens;      /* of this run's steps */
    int64_t skipped;     /* steps that changed nothing, with those before a resume */
    double loss;         /* of the last record of the metrics; NaN: none */
    double eval_loss;    /* NaN: none */
    bool has_perplexity; /* e^eval_loss means something: not of classifiers and pairs of answers */
    double seconds;      /* of steps, evaluations and saves */
    double step_seconds; /* of steps alone */
    int64_t planned_bytes, measured_bytes; /* of a rank: of the engine; at most, in all */
    int64_t baseline_bytes;                /* of a rank before the engine took its memory */
    bool alone;   /* where sifr_train fails: this rank alone knows why; the others know only that it
                     left */
    char *report; /* with options.report, on the first rank: what `sifr train --json` prints, but
                     for warnings. The caller's: sifr_text_free */
} sifr_train_outcome;

/* Of all ranks. ranks: NULL for one rank. options: NULL for none. The output folder of the config
 * gets the trained model, sifr_config.json, metrics and checkpoints; wrong input is refused before
 * it is touched. SIFR_OK also where a callback stopped the run. Any failure is that of the first
 * rank that failed, on all ranks, unless a rank is lost (SIFR_LOST_RANK). *outcome is filled in
 * either case. `config` is read only. */
SIFR_API sifr_status sifr_train(sifr_context *context, const sifr_config *config, sifr_ranks *ranks,
                                const sifr_train_options *options, sifr_train_outcome *outcome,
                                sifr_error *error) SIFR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
