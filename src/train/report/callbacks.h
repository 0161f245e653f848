/* Callbacks of the program that runs the training. The library itself prints nothing and handles no
 * signals.
 */
#ifndef TRAIN_CALLBACKS_H
#define TRAIN_CALLBACKS_H

#include "base/errors.h"
#include "sifr/engine.h"
#include "train/evaluate/evaluate.h"

/* A step that is over, also one that was skipped. */
typedef struct train_step_event {
    int64_t step;
    double rate, seconds;
    double next_rate, next_scale; /* learning rate and loss scale of the next step */
    const sifr_step_result *result;
} train_step_event;

/* What a run has written. */
typedef struct train_save_event {
    bool model; /* the trained model; else a checkpoint */
    int64_t step;
    const char *path;
} train_save_event;

/* Only `line`, `live` and `columns` are for the first rank alone. */
typedef struct train_host {
    const sifr_log *log;                        /* information and warnings; may be NULL */
    void (*line)(void *user, const char *text); /* prints a line; may be NULL */
    void (*live)(void *user, const char *text); /* replaces the previous live line, "" removes it;
                                                   NULL without a terminal */
    int (*columns)(void *user);                 /* width of the live line; NULL: 80 */
    bool chart; /* the live line may have a chart of the loss, in braille */
    /* When steps begin, after so many of `total`: from then on a request to stop saves first; may
     * be NULL. */
    void (*begin)(void *user, int64_t step, int64_t total);
    int (*stopped)(void *user); /* the signal that asks the run to stop, 0: none; may be NULL */
    /* What is over, alike on all ranks; each may be NULL. */
    void (*stepped)(void *user, const train_step_event *event);
    void (*evaluated)(void *user, int64_t step, const train_evaluation *evaluation);
    void (*saved)(void *user, const train_save_event *event);
    int threads; /* threads of this rank if the config gives none; 0: one for each core */
    /* Ranks on each NUMA node of a host, and on each network switch; 0: one, or not known. */
    int ranks_per_node, ranks_per_switch;
    void *user;
} train_host;

void train_say(const train_host *host, const char *format, ...) SIFR_PRINTF(2, 3);
int train_columns(const train_host *host);
int train_stopped(const train_host *host);

#endif
