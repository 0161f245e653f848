/* How far the ranks' clocks are apart. */
#ifndef TRAIN_CLOCKS_H
#define TRAIN_CLOCKS_H

#include "comm/comm.h"

/* A rank's clock: base_seconds, but for tests. Clocks with the same `id` are the same one. */
typedef struct train_clock {
    double (*now)(void *user);
    void *user;
    uint64_t id;
} train_clock;

/* base_seconds, with an id that ranks of one host (of one running kernel) share. */
train_clock train_clock_here(void);

/* Seconds by which each rank's clock is ahead of rank 0's, into ahead[ranks]; all ranks call it and
 * get the same. Exact where the clock is rank 0's own, else right to about half the time that a
 * small exchange takes. */
sifr_status train_clocks_compare(comm_group *group, const train_clock *clock, double *ahead,
                                 sifr_error *error) SIFR_MUST_CHECK;

#endif
