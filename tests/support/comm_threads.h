/* Ranks as threads of one process, for tests. As with the real transports a thread of its own moves
 * each rank's bytes, beside what the rank does, and comm_slow_down holds; every collective meets
 * those of the others at a barrier. Sums are made in tree order, bytes are counted as there. */
#ifndef COMM_THREADS_H
#define COMM_THREADS_H

#include "comm/comm.h"

typedef struct comm_threads comm_threads;

comm_threads *comm_threads_create(int32_t ranks);
void comm_threads_free(comm_threads *world); /* after all of its groups are closed */

/* For ranks whose devices hide their memory; before any group is made. */
void comm_threads_share(comm_threads *world);

/* For groups whose ranks say that so many of them are on each host; before any group is made. */
void comm_threads_place(comm_threads *world, int32_t per_host);

/* Rank `rank`'s group; closed with comm_close. */
comm_group *comm_threads_group(comm_threads *world, int32_t rank);

#endif
