/* Divides a host's cores among its ranks, which tell each other on which cores their launcher lets
 * them run.
 */
#ifndef COMM_CORES_H
#define COMM_CORES_H

#include "comm/comm.h"

typedef struct comm_cores {
    int32_t threads; /* threads of this rank: one for each core of its share, at least 1 */
    int32_t sharers; /* ranks of this host that may run on the same cores, itself included */
    int32_t here;    /* all ranks of this host */
    int32_t cores;   /* that those share */
    int32_t idle;    /* cores that this container may use but no rank may */
    int32_t node;    /* NUMA node of the share; -1: not within one node */
    /* Where the ranks divide evenly, and 0 elsewhere or where there is but one: ranks of this host
     * on each of its NUMA nodes, ranks of the world on each network switch that the scheduler
     * names. */
    int32_t per_node, per_switch;
} comm_cores;

/* Divides the cores that this rank may run on among all ranks that may run on them. All ranks call
 * it; each sends one control message. */
sifr_status comm_divide_cores(comm_group *group, comm_cores *out,
                              sifr_error *error) SIFR_MUST_CHECK;

/* An id that is the same on all ranks of a host, and differs between hosts. */
uint64_t comm_host_id(void);

/* An id of the network switch to which Slurm says that this host is connected; 0: not said. */
uint64_t comm_switch_id(void);

/* Moves this process to the NUMA node of its share, if there is one. Call it before taking memory.
 */
void comm_settle(const comm_cores *cores);

#endif
