/* A figure of every rank, as its least, median and largest. */
#ifndef TRAIN_SPREAD_H
#define TRAIN_SPREAD_H

#include <stddef.h>

#include "comm/comm.h"

typedef struct train_spread {
    double least, median, most;
    int32_t least_rank, most_rank; /* the lowest ones that have it */
} train_spread;

/* Of each of values[count], which stand for the same thing on every rank; all ranks call it and get
 * the same. The median of an even number of ranks is the mean of the two in the middle. */
sifr_status train_spread_over(comm_group *group, const double *values, size_t count,
                              train_spread *out, sifr_error *error) SIFR_MUST_CHECK;

#endif
