/* The cores that a process may run on, divided among several: hwloc knows which processors are one
 * core and which cores are near the same memory. */
#ifndef BASE_TOPOLOGY_H
#define BASE_TOPOLOGY_H

#include <hwloc.h>
#include <stdint.h>

#include "base/errors.h"

/* This machine's; free with hwloc_topology_destroy. */
sifr_status base_topology_load(hwloc_topology_t *out, sifr_error *error) SIFR_MUST_CHECK;

/* Cores with at least one processor in `set`; processors where the machine tells of no cores. */
int32_t base_topology_cores(hwloc_topology_t topology, hwloc_const_cpuset_t set);

typedef struct base_core_share {
    int32_t
        threads;  /* one for each core of the share; at least 1, also where there are fewer cores */
    int32_t node; /* NUMA node that the share lies in, where that is not all of `set`; else -1 */
} base_core_share;

/* Share number `index` of `count` of the cores of `set`; none is more than an equal part. Where
 * every NUMA node can have as many shares as every other, each lies within one node. `quota`:
 * processors' worth of time that all together may take, 0: no limit. */
base_core_share base_topology_divide(hwloc_topology_t topology, hwloc_const_cpuset_t set,
                                     double quota, int32_t index, int32_t count);

/* Threads of each of so many ranks that share the cores which this process may run on, and its
 * control group's quota: one a core, or a processor where hwloc cannot tell. At least 1. */
int32_t base_topology_threads(int32_t ranks);

#endif
