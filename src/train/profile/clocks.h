/* Differences between the ranks' clocks. */
#ifndef TRAIN_CLOCKS_H
#define TRAIN_CLOCKS_H

#include "comm/comm.h"

/* A rank's clock: base_seconds, except in tests. Clocks with the same `id` are the same clock. */
typedef struct train_clock {
    double (*now)(void *user);
    void *user;
    uint64_t id;
} train_clock;

/* base_seconds, with an id shared by the ranks of one host (one running kernel). */
train_clock train_clock_here(void);

/* Seconds by which each rank's clock is ahead of rank 0's, into ahead[ranks]; all ranks call it and
 * get the same. Exact if the clock is the same as rank 0's; otherwise accurate to about half the
 * time of a small exchange. */
sifr_status train_clocks_compare(comm_group *group, const train_clock *clock, double *ahead,
                                 sifr_error *error) SIFR_MUST_CHECK;

#endif
