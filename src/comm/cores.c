#include "comm/cores.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/lines.h"
#include "base/system.h"
#include "base/topology.h"

enum { WORDS = 16 }; /* only the first 16 x 64 processors are exchanged */

/* Where a rank may run. */
typedef struct place {
    uint64_t host;
    uint64_t leaf; /* its switch */
    uint64_t processors[WORDS];
} place;

/* Hosts with the same name are distinguished by their kernels' boot ids. */
uint64_t comm_host_id(void) {
    char name[256] = "", boot[64];
    if (gethostname(name, sizeof name - 1) != 0) name[0] = '\0';
    base_read_line("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    return base_hash_seeded(boot, strlen(boot), base_hash_seeded(name, strlen(name), 0));
}

/* "s0.s2.host7" with the pattern "switch.switch.node": the switches from the topmost to the host's
 * own, then the host, whose name may have periods. */
uint64_t comm_switch_id(void) {
    const char *address = getenv("SLURM_TOPOLOGY_ADDR");
    const char *pattern = getenv("SLURM_TOPOLOGY_ADDR_PATTERN");
    size_t length = 0;
    if (!address || !pattern) return 0;
    while ((pattern = strchr(pattern, '.'))) {
        const char *end = strchr(address + length, '.');
        if (!end) return 0;
        length = (size_t)(end - address) + 1;
        pattern++;
    }
    return length ? base_hash_seeded(address, length, 1) : 0;
}

static bool intersect(const place *a, const place *b) {
    bool some = false;
    for (int i = 0; i < WORDS; i++) some = some || (a->processors[i] & b->processors[i]);
    return a->host == b->host && some;
}

/* How many ranks are on each switch, if each has as many, one behind the other; the last may have
 * fewer. 0: they do not, or there is one switch. */
static int32_t ranks_per_switch(const place *all, int32_t size) {
    int32_t each = 0;
    while (each < size && all[each].leaf == all[0].leaf) each++;
    if (each == size || all[0].leaf == 0) return 0;
    for (int32_t r = each; r < size; r++) {
        bool first = r % each == 0; /* of its switch */
        bool same = all[r].leaf == all[r - 1].leaf;
        if (same == first || all[r].leaf == all[0].leaf || all[r].leaf == 0) return 0;
    }
    return each;
}

/* Computes the rank's own share, and in `used` the processors that all ranks of this host may use.
 */
static void divide(hwloc_topology_t topology, const place *all, int32_t rank, int32_t size,
                   hwloc_cpuset_t own, hwloc_cpuset_t used, comm_cores *out) {
    int32_t index = 0, here = 0;
    base_system system;
    base_system_read(&system);
    out->sharers = 0;
    for (int32_t r = 0; r < size; r++) {
        here += all[r].host == all[rank].host;
        if (all[r].host == all[rank].host)
            for (int i = 0; i < WORDS * 64; i++)
                if (all[r].processors[i / 64] >> (i % 64) & 1) hwloc_bitmap_set(used, (unsigned)i);
        if (r != rank && !intersect(&all[r], &all[rank])) continue;
        out->sharers++;
        index += r < rank;
    }
    base_assert(index < out->sharers && out->sharers <= here);
    base_core_share share =
        base_topology_divide(topology, own, system.cpu_quota, index, out->sharers);
    base_assert(share.threads >= 1);
    out->here = here;
    out->threads = share.threads;
    out->node = share.node;
    out->per_node = out->sharers == here ? share.per_node : 0;
    out->per_switch = ranks_per_switch(all, size);
    out->cores = base_topology_cores(topology, own);
}

/* Without hwloc, `own` stands for all processors of the machine or container. */
static sifr_status gather_places(comm_group *group, hwloc_cpuset_t own, place *all,
                                 sifr_error *error) {
    place mine = {.host = comm_host_id(), .leaf = comm_switch_id()};
    for (int i = 0; i < WORDS * 64; i++)
        if (hwloc_bitmap_isset(own, (unsigned)i)) mine.processors[i / 64] |= (uint64_t)1 << i % 64;
    return comm_all_gather_control(group, &mine, sizeof mine, all, error);
}

sifr_status comm_divide_cores(comm_group *group, comm_cores *out, sifr_error *error) {
    hwloc_topology_t topology = NULL;
    place *all = NULL;
    sifr_status status;
    int32_t size = comm_size(group);
    hwloc_cpuset_t own = hwloc_bitmap_alloc(), used = hwloc_bitmap_alloc();
    *out = (comm_cores){.threads = 1, .node = -1};
    status = own && used ? SIFR_OK : base_fail_alloc(error, 64);
    if (status == SIFR_OK) status = base_alloc((size_t)size, sizeof *all, &all, error);
    if (status == SIFR_OK) status = base_topology_load(&topology, error);
    if (status != SIFR_OK) goto done;
    hwloc_const_cpuset_t there = hwloc_topology_get_allowed_cpuset(topology);
    if (hwloc_get_cpubind(topology, own, HWLOC_CPUBIND_PROCESS) != 0) hwloc_bitmap_copy(own, there);
    BASE_TRY_GOTO(status, gather_places(group, own, all, error), done);
    divide(topology, all, comm_rank(group), size, own, used, out);
    out->idle = base_topology_cores(topology, there) - base_topology_cores(topology, used);
done:
    if (topology) hwloc_topology_destroy(topology);
    hwloc_bitmap_free(own);
    hwloc_bitmap_free(used);
    free(all);
    return status;
}

void comm_settle(const comm_cores *cores) {
    hwloc_topology_t topology;
    if (cores->node < 0 || base_topology_load(&topology, NULL) != SIFR_OK) return;
    hwloc_obj_t node = hwloc_get_numanode_obj_by_os_index(topology, (unsigned)cores->node);
    hwloc_cpuset_t part = hwloc_bitmap_alloc();
    if (node && part && hwloc_get_cpubind(topology, part, HWLOC_CPUBIND_PROCESS) == 0 &&
        hwloc_bitmap_and(part, part, node->cpuset) == 0 && !hwloc_bitmap_iszero(part))
        hwloc_set_cpubind(topology, part, HWLOC_CPUBIND_PROCESS); /* only a matter of speed */
    hwloc_bitmap_free(part);
    hwloc_topology_destroy(topology);
}
