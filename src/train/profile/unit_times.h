/* Forward, recomputation and backward time of each unit, for activation_checkpointing.profile. */
#ifndef TRAIN_UNIT_TIMES_H
#define TRAIN_UNIT_TIMES_H

#include "comm/comm.h"
#include "plan/schedule.h"
#include "train/profile/spread.h"
#include "train/report/callbacks.h"

typedef struct train_unit_times {
    const plan_schedule *schedule; /* borrowed; NULL: not asked for */
    double *seconds;               /* by unit: forward, recomputation, backward */
    train_spread *spread;          /* likewise over all ranks, at the end */
    int64_t steps;
} train_unit_times;

sifr_status train_unit_times_open(train_unit_times *times, const plan_schedule *schedule,
                                  sifr_error *error) SIFR_MUST_CHECK;
void train_unit_times_close(train_unit_times *times); /* harmless on a zeroed one */

/* Adds the step that just ran: seconds by instruction. Does nothing if not asked for. */
void train_unit_times_add(train_unit_times *times, const float *seconds);

/* Prints milliseconds a step, a line for each unit; the median over several ranks. All ranks call
 * it. */
sifr_status train_unit_times_say(const train_unit_times *times, comm_group *group,
                                 const train_host *host, sifr_error *error) SIFR_MUST_CHECK;

#endif
