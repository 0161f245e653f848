/* The least, median and largest of a figure over the ranks. */
#ifndef TRAIN_SPREAD_H
#define TRAIN_SPREAD_H

#include <stddef.h>

#include "comm/comm.h"

typedef struct train_spread {
    double least, median, most;
    int32_t least_rank, most_rank; /* the lowest ranks that have these values */
} train_spread;

/* For each of values[count], which have the same meaning on every rank. All ranks call it and get
 * the same result. The median of an even number of ranks is the mean of the middle two. */
sifr_status train_spread_over(comm_group *group, const double *values, size_t count,
                              train_spread *out, sifr_error *error) SIFR_MUST_CHECK;

#endif
