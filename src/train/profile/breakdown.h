/* A step's time by class of instruction, measured and planned. */
#ifndef TRAIN_BREAKDOWN_H
#define TRAIN_BREAKDOWN_H

#include "engine/executor/executor.h"
#include "train/report/callbacks.h"

/* One class for each action, and for each kernel. */
enum { TRAIN_BREAKDOWN_CLASSES = PLAN_ACTIONS * (DEVICE_KERNELS + 1) };

typedef struct train_breakdown {
    double measured[TRAIN_BREAKDOWN_CLASSES], planned[TRAIN_BREAKDOWN_CLASSES]; /* seconds */
    int64_t calls[TRAIN_BREAKDOWN_CLASSES];
    int64_t steps;
    double step_seconds; /* wall time of those steps, including the time between them */
} train_breakdown;

/* Adds the step that just ran: for each instruction, the seconds that it held the computing queue,
 * and the seconds predicted by plan_predict (NULL: none). */
void train_breakdown_add(train_breakdown *breakdown, const plan_schedule *schedule,
                         const float *seconds, const float *planned, double step_seconds);

/* Prints milliseconds a step, a line for each class, the largest first. With several ranks: the
 * least, the median and the largest, and the rank with the largest. All ranks call it after the
 * same steps. */
sifr_status train_breakdown_say(const train_breakdown *breakdown, comm_group *group,
                                const train_host *host, sifr_error *error) SIFR_MUST_CHECK;

#endif
