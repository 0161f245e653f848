/* Divides the cores that a process may run on among several processes. hwloc tells which processors
 * belong to one core and which cores to one NUMA node. */
#ifndef BASE_TOPOLOGY_H
#define BASE_TOPOLOGY_H

#include <hwloc.h>
#include <stdint.h>

#include "base/errors.h"

/* Loads this machine's topology; free with hwloc_topology_destroy. */
sifr_status base_topology_load(hwloc_topology_t *out, sifr_error *error) SIFR_MUST_CHECK;

/* Counts cores with at least one processor in `set`, or processors if the topology has no cores. */
int32_t base_topology_cores(hwloc_topology_t topology, hwloc_const_cpuset_t set);

typedef struct base_core_share {
    int32_t threads;  /* one a core of the share; at least 1, even with fewer cores than shares */
    int32_t node;     /* NUMA node of the share, if `set` spans several; else -1 */
    int32_t per_node; /* shares of each node; 0: shares do not lie within nodes */
} base_core_share;

/* Returns share `index` of `count` of the cores of `set`; no share exceeds an equal part. If all
 * NUMA nodes can have equally many shares, each share lies within one node. `quota` is the
 * processor time that all shares together may take, in processors; 0: no limit. */
base_core_share base_topology_divide(hwloc_topology_t topology, hwloc_const_cpuset_t set,
                                     double quota, int32_t index, int32_t count);

/* Threads for each of `ranks` ranks that share the cores of this process, within the quota of its
 * control group: one a core, or a processor if hwloc cannot tell. At least 1. */
int32_t base_topology_threads(int32_t ranks);

/* How many of them lie on each NUMA node; 0: they do not lie within one of several. */
int32_t base_topology_ranks_per_node(int32_t ranks);

#endif
