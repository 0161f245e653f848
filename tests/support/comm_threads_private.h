/* What the ranks of comm_threads.c hold, and what moves their data, on threads of their own
 * (comm_threads_work.c). */
#ifndef COMM_THREADS_PRIVATE_H
#define COMM_THREADS_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "comm/followed.h"
#include "support/comm_threads.h"

enum { WINDOWS = 4 };

/* A rank's block of hidden memory, as it tells the others. */
typedef struct threads_notice {
    char *block;
    int64_t bytes;
    device_share share;
} threads_notice;

/* Ranks that meet: all, or those of a group that was split off. */
struct comm_threads {
    int32_t ranks;
    int32_t per_host; /* 0: all on one */
    bool shares;
    pthread_barrier_t barrier;
    const void **posted;     /* by rank */
    threads_notice *notices; /* by rank */
    comm_member *members;    /* by rank: in a split */
    comm_threads **parts;    /* by rank: the group that it gets in a split */
    pthread_mutex_t lock;    /* of the sends */
    comm_task **sends;       /* rank x COMM_LINE: posted, by their sender; NULL: free */
    atomic_int users;        /* of a group that was split off: its ranks that have it open */
};

/* Blocks that ranks opened together, by rank: as their owners know them, and as this rank does. */
typedef struct threads_window {
    threads_notice *theirs;
    char **seen;
} threads_window;

/* What a rank's groups share: they are moved by one thread, and find operands in the windows that
 * the group of all ranks opened. */
typedef struct threads_process {
    int groups;
    comm_worker workers[COMM_LANES], peers;
    pthread_mutex_t device; /* held while a lane gives it work */
    threads_window windows[WINDOWS];
    comm_flags flags; /* of what is followed */
} threads_process;

typedef struct threads_group {
    comm_group group;
    comm_threads *world;
    threads_process *process;
    comm_worker *worker;              /* of its lane */
    uint32_t *sent, *asked, *engaged; /* by rank, with peers */
} threads_group;

enum { BEHIND = 1 }; /* elements of a control message that is behind what was computed */

/* For comm_worker_open: a collective. */
sifr_status comm_threads_run(void *user, comm_task *task, sifr_error *error);
/* For comm_worker_open_turns: a try at a send or a receive, and the pause between rounds. */
sifr_status comm_threads_turn(void *user, comm_task *task, bool *over, sifr_error *error);
void comm_threads_rest(void *user);

#endif
