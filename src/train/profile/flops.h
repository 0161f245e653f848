/* DeepSpeed's flops profile: parameters, multiply-accumulates and time of one step, by unit and op,
 * from the schedule's own list. Of the first rank. */
#ifndef TRAIN_FLOPS_H
#define TRAIN_FLOPS_H

#include "config/config.h"
#include "plan/schedule.h"
#include "train/report/callbacks.h"

/* What a node of the model took in the step. */
typedef struct train_node_work {
    double operations, seconds; /* of its forward calls, in all micro batches */
} train_node_work;

typedef struct train_flops {
    const config_flops_profiler *config; /* borrowed; NULL: not asked for */
    const plan_schedule *schedule;
    int64_t step;                            /* the step that is counted, from 1 */
    train_node_work *work;                   /* by node */
    double forward, backward, update, other; /* seconds of the compute queue */
    double forward_operations, backward_operations;
    bool done;
} train_flops;

/* SIFR_USAGE if the file that the config names cannot be written. */
sifr_status train_flops_open(train_flops *flops, const config_flops_profiler *config,
                             const plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;
void train_flops_close(train_flops *flops); /* harmless on a zeroed one */

/* After step `step`, with its seconds by instruction: prints the profile if it is the one. Does
 * nothing if not asked for. */
sifr_status train_flops_step(train_flops *flops, int64_t step, const float *seconds,
                             double step_seconds, const train_host *host,
                             sifr_error *error) SIFR_MUST_CHECK;

#endif
