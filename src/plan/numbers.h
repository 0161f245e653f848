/* The numbers of a step in device memory, plan_schedule.numbers: what kernels read of a step, and
 * what folds and the decision leave. */
#ifndef PLAN_NUMBERS_H
#define PLAN_NUMBERS_H

#include "plan/schedule.h"

typedef struct plan_numbers {
    device_step step;
    device_step last; /* of the step whose update is deferred to this one */
    device_outcome outcome;
    double squares; /* their sum over all ranks */
    /* Sums by micro batch: this rank's; then, with several ranks, those of all in rank order. Then
     * device_square_parts doubles. */
    double losses[];
} plan_numbers;

/* Doubles behind the members above. */
typedef struct plan_number_places {
    int64_t all_losses, parts; /* where they begin in `losses` */
    int64_t count;
} plan_number_places;
plan_number_places plan_places_of_numbers(const plan_schedule *schedule);

/* Bytes of the buffer. */
int64_t plan_number_bytes(const plan_schedule *schedule);

#endif
