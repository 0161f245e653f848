/* Ranks as threads of one process, for tests: every collective of a rank meets those of the others
 * at a barrier. Sums are made in tree order, bytes are counted as the real transports count. */
#ifndef COMM_THREADS_H
#define COMM_THREADS_H

#include "comm/comm.h"

typedef struct comm_threads comm_threads;

comm_threads *comm_threads_create(int32_t ranks);
void comm_threads_free(comm_threads *world); /* after all of its groups are closed */

/* Rank `rank`'s group; closed with comm_close. */
comm_group *comm_threads_group(comm_threads *world, int32_t rank);

#endif
