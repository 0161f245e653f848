/* Where a step's time goes, by class of instruction: measured, and beside it planned. */
#ifndef TRAIN_BREAKDOWN_H
#define TRAIN_BREAKDOWN_H

#include "engine/executor/executor.h"
#include "train/callbacks.h"

/* One class for each action and, of kernels, each kernel. */
enum { TRAIN_BREAKDOWN_CLASSES = PLAN_ACTIONS * (DEVICE_KERNELS + 1) };

typedef struct train_breakdown {
    double measured[TRAIN_BREAKDOWN_CLASSES], planned[TRAIN_BREAKDOWN_CLASSES]; /* seconds */
    int64_t calls[TRAIN_BREAKDOWN_CLASSES];
    int64_t steps;
    double step_seconds; /* of those steps, all that was done between them included */
} train_breakdown;

/* Adds the step that just ran: by instruction the seconds that it held the computing queue, and
 * those that plan_predict said (NULL: nothing was planned). */
void train_breakdown_add(train_breakdown *breakdown, const plan_schedule *schedule,
                         const float *seconds, const float *planned, double step_seconds);

/* Milliseconds a step, the largest class first, a line each; of several ranks the least, median and
 * largest, and the rank that has that. All ranks call it, after the same steps. */
sifr_status train_breakdown_say(const train_breakdown *breakdown, comm_group *group,
                                const train_host *host, sifr_error *error) SIFR_MUST_CHECK;

#endif
