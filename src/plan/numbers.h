/* The numbers of a step in device memory, plan_schedule.numbers: what kernels read of a step, and
 * what folds and the decision leave. */
#ifndef PLAN_NUMBERS_H
#define PLAN_NUMBERS_H

#include "plan/schedule.h"

typedef struct plan_numbers {
    device_step last; /* of the step whose update is deferred to this one */
    device_outcome outcome;
    /* Where a step begins, the host writes both: the squares are zeros. */
    device_step step;
    base_exact_sum squares; /* of the gradients that this rank owns */
    /* Sums by micro batch of this rank: with the squares before them, its part of the decision.
     * Then, with several ranks, the parts of all in rank order. */
    double losses[];
} plan_numbers;

/* Bytes of a rank's part, from `squares` on. */
int64_t plan_part_bytes(const plan_schedule *schedule);

/* Of `step` and `squares`. */
int64_t plan_begin_bytes(void);

/* Bytes of the buffer up to the parts of all ranks, and with them. */
int64_t plan_own_number_bytes(const plan_schedule *schedule);
int64_t plan_number_bytes(const plan_schedule *schedule);

/* The parts of all ranks. */
void *plan_all_parts(const plan_schedule *schedule, plan_numbers *numbers);

#endif
