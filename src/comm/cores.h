/* Which cores are whose: the ranks of a host tell each other where their launcher lets them run. */
#ifndef COMM_CORES_H
#define COMM_CORES_H

#include "comm/comm.h"

typedef struct comm_cores {
    int32_t threads; /* for this rank: one a core of its share, at least 1 */
    int32_t sharers; /* ranks of this host that may run on the same cores, itself included */
    int32_t cores;   /* that those share */
    int32_t idle;    /* cores of this host that no rank may use, though this container may */
    int32_t node;    /* NUMA node that the share lies in, -1: not within one */
} comm_cores;

/* Divides the cores that this rank may run on among those that may run on them too. All ranks call
 * it; one control message each. */
sifr_status comm_divide_cores(comm_group *group, comm_cores *out,
                              sifr_error *error) SIFR_MUST_CHECK;

/* The same on all ranks of a host, and of no other one. */
uint64_t comm_host_id(void);

/* Moves this process to the NUMA node of its share, where it has one; before memory is taken. */
void comm_settle(const comm_cores *cores);

#endif
