#include "base/topology.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/system.h"

/* Without /sys, hwloc would complain on standard error and know little. Then every processor counts
 * as one core. */
static int describe_flat(hwloc_topology_t topology) {
    char text[64];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    snprintf(text, sizeof text, "core:%ld pu:1", processors > 0 ? processors : 1);
    if (hwloc_topology_set_synthetic(topology, text) != 0) return -1;
    return hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM);
}

sifr_status base_topology_load(hwloc_topology_t *out, sifr_error *error) {
    if (hwloc_topology_init(out) != 0)
        return base_fail(error, SIFR_FAILED, "hwloc: no topology could be made");
    bool described = access("/sys/devices/system/cpu", R_OK) == 0;
    if ((described || describe_flat(*out) == 0) && hwloc_topology_load(*out) == 0) return SIFR_OK;
    hwloc_topology_destroy(*out);
    return base_fail(error, SIFR_FAILED, "hwloc: the machine's topology could not be read");
}

static int32_t count_within(hwloc_topology_t topology, hwloc_const_cpuset_t set,
                            hwloc_obj_type_t type) {
    int32_t found = 0;
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(topology, type, o));)
        found += o->cpuset && hwloc_bitmap_intersects(o->cpuset, set);
    return found;
}

int32_t base_topology_cores(hwloc_topology_t topology, hwloc_const_cpuset_t set) {
    int32_t cores = count_within(topology, set, HWLOC_OBJ_CORE);
    return cores ? cores : count_within(topology, set, HWLOC_OBJ_PU);
}

/* NUMA node `number` among those with processors in `set`. */
static hwloc_obj_t find_node(hwloc_topology_t topology, hwloc_const_cpuset_t set, int32_t number) {
    hwloc_obj_t node = NULL;
    while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)))
        if (node->cpuset && hwloc_bitmap_intersects(node->cpuset, set) && number-- == 0) break;
    return node;
}

base_core_share base_topology_divide(hwloc_topology_t topology, hwloc_const_cpuset_t set,
                                     double quota, int32_t index, int32_t count) {
    base_core_share share = {.node = -1};
    int32_t cores = base_topology_cores(topology, set);
    int32_t nodes = count_within(topology, set, HWLOC_OBJ_NUMANODE);
    if (quota > 0 && quota < cores) cores = quota < 1 ? 1 : (int32_t)quota;
    share.threads = cores / count;
    if (nodes > 1 && count % nodes == 0 && count <= cores) {
        int32_t a_node = count / nodes; /* shares of each node */
        hwloc_obj_t node = find_node(topology, set, index / a_node);
        hwloc_cpuset_t part = node ? hwloc_bitmap_alloc() : NULL;
        if (part && hwloc_bitmap_and(part, node->cpuset, set) == 0) {
            int32_t here = base_topology_cores(topology, part) / a_node;
            if (here > 0) {
                share.node = (int32_t)node->os_index;
                share.per_node = a_node;
                if (here < share.threads) share.threads = here;
            }
        }
        hwloc_bitmap_free(part);
    }
    if (share.threads < 1) share.threads = 1;
    return share;
}

/* Of this process's cores. False if hwloc cannot tell. */
static bool first_share(int32_t ranks, double quota, base_core_share *out) {
    hwloc_topology_t topology;
    if (base_topology_load(&topology, NULL) != SIFR_OK) return false;
    hwloc_cpuset_t own = hwloc_bitmap_alloc();
    bool known = own && hwloc_get_cpubind(topology, own, HWLOC_CPUBIND_PROCESS) == 0;
    if (known) *out = base_topology_divide(topology, own, quota, 0, ranks);
    hwloc_bitmap_free(own);
    hwloc_topology_destroy(topology);
    return known;
}

int32_t base_topology_threads(int32_t ranks) {
    base_system system;
    base_core_share share;
    base_system_read(&system);
    if (first_share(ranks, system.cpu_quota, &share)) return share.threads;
    return system.cpus > ranks ? system.cpus / ranks : 1;
}

int32_t base_topology_ranks_per_node(int32_t ranks) {
    base_core_share share;
    return first_share(ranks, 0, &share) ? share.per_node : 0;
}
