/* Watches the start of MPI, whose calls come back only when all ranks are there. */
#ifndef COMM_START_WATCH_H
#define COMM_START_WATCH_H

#include <pthread.h>
#include <stdbool.h>

#include "comm/comm.h"

typedef struct comm_start_watch {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    comm_start start;
    bool running, over;
} comm_start_watch;

/* Nothing is watched without a callback. The watch must not move while it is open. */
sifr_status comm_start_watch_open(comm_start_watch *watch, const comm_start *start,
                                  sifr_error *error) SIFR_MUST_CHECK;
void comm_start_watch_close(comm_start_watch *watch);

#endif
