/* Whose cores are whose: what a rank tells of itself, and whom it shares with where others tell
 * that they run on the same cores, on other ones, or on another host. The others are made up. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/topology.h"
#include "comm/cores.h"
#include "comm/transport.h"

/* A host's id, that of its switch, and its processors. */
enum { RANKS = 4, WORDS = 16, FIRST = 2, PLACE = FIRST + WORDS };

/* In a made-up rank's place, against this rank's; on another host it may use all there are. */
typedef enum other { SAME, OTHER_CORES, ALL_CORES, OTHER_HOST } other;

typedef struct made_up {
    comm_group group;
    other others[RANKS];  /* this rank's own is SAME */
    uint64_t leaf[RANKS]; /* the switch of each; 0: as this rank tells */
    uint64_t told[PLACE];
    int calls;
    bool fails;
} made_up;

static sifr_status gather(comm_group *group, const void *mine, int64_t bytes, void *all,
                          sifr_error *error) {
    made_up *m = (made_up *)group;
    uint64_t(*places)[PLACE] = all;
    m->calls++;
    if (m->fails) return base_fail(error, SIFR_LOST_RANK, "control: rank 1 has died");
    assert_int_equal(bytes, sizeof m->told);
    memcpy(m->told, mine, sizeof m->told);
    for (int32_t r = 0; r < group->size; r++) {
        memcpy(places[r], mine, sizeof m->told);
        if (m->others[r] == OTHER_HOST) places[r][0]++;
        if (m->leaf[r]) places[r][1] = m->leaf[r];
        for (int w = FIRST; w < PLACE; w++) {
            if (m->others[r] == OTHER_CORES) places[r][w] = ~places[r][w];
            if (m->others[r] == ALL_CORES || m->others[r] == OTHER_HOST) places[r][w] = UINT64_MAX;
        }
    }
    return SIFR_OK;
}

static const comm_transport transport = {.all_gather_control = gather};

static made_up of_ranks(int32_t rank, int32_t size) {
    return (made_up){.group = {.transport = &transport, .rank = rank, .size = size}};
}

static comm_cores divide(made_up *m) {
    comm_cores cores;
    sifr_error error = {0};
    assert_int_equal(comm_divide_cores(&m->group, &cores, &error), SIFR_OK);
    assert_int_equal(m->calls, 1); /* one control message */
    assert_true(cores.threads >= 1);
    return cores;
}

static cpu_set_t before;

static int remember(void **state) {
    (void)state;
    return sched_getaffinity(0, sizeof before, &before);
}

/* Of all threads: a sanitizer may have one too. */
static int bind_to(const cpu_set_t *cpus) {
    hwloc_topology_t topology;
    if (base_topology_load(&topology, NULL) != SIFR_OK) return -1;
    hwloc_cpuset_t set = hwloc_bitmap_alloc();
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, cpus)) hwloc_bitmap_set(set, (unsigned)i);
    int result = hwloc_set_cpubind(topology, set, HWLOC_CPUBIND_PROCESS);
    hwloc_bitmap_free(set);
    hwloc_topology_destroy(topology);
    return result;
}

static int free_again(void **state) {
    (void)state;
    return bind_to(&before);
}

/* To the lowest processor that this process may use. */
static void pin(void) {
    cpu_set_t one;
    int cpu = 0;
    while (!CPU_ISSET(cpu, &before)) cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(bind_to(&one), 0);
}

static void test_tells(void **state) {
    (void)state;
    made_up m = of_ranks(0, 1);
    divide(&m);
    assert_true(m.told[0] == comm_host_id());
    assert_true(comm_host_id() == comm_host_id());
    for (int i = 0; i < CPU_SETSIZE && i < WORDS * 64; i++)
        assert_int_equal(m.told[FIRST + i / 64] >> (i % 64) & 1, CPU_ISSET(i, &before) != 0);
}

/* Ranks on the same cores get the same number of threads, and no more than there are cores. */
static void test_shared(void **state) {
    (void)state;
    made_up m = of_ranks(0, 1);
    comm_cores alone = divide(&m);
    assert_int_equal(alone.sharers, 1);
    assert_true(alone.threads <= alone.cores);
    for (int32_t rank = 0; rank < RANKS; rank++) {
        m = of_ranks(rank, RANKS);
        comm_cores shared = divide(&m);
        assert_int_equal(shared.sharers, RANKS);
        assert_int_equal(shared.cores, alone.cores);
        assert_int_equal(shared.idle, alone.idle);
        if (shared.node < 0)
            assert_int_equal(shared.threads, alone.threads < RANKS ? 1 : alone.threads / RANKS);
        else
            assert_true(shared.threads <= alone.threads);
    }
}

static void test_sharers(void **state) {
    (void)state;
    made_up m = of_ranks(1, RANKS);
    m.others[0] = OTHER_HOST, m.others[2] = OTHER_CORES, m.others[3] = ALL_CORES;
    assert_int_equal(divide(&m).sharers, 2); /* itself and 3 */
    m = of_ranks(1, RANKS);
    m.others[0] = m.others[2] = m.others[3] = OTHER_HOST;
    assert_int_equal(divide(&m).sharers, 1);
    m = of_ranks(3, RANKS);
    m.others[0] = OTHER_CORES;
    assert_int_equal(divide(&m).sharers, 3);
}

/* What Slurm tells of the switch: all but the host's own name, which may have periods. */
static uint64_t switch_of(const char *address, const char *pattern) {
    unsetenv("SLURM_TOPOLOGY_ADDR");
    unsetenv("SLURM_TOPOLOGY_ADDR_PATTERN");
    if (address) setenv("SLURM_TOPOLOGY_ADDR", address, 1);
    if (pattern) setenv("SLURM_TOPOLOGY_ADDR_PATTERN", pattern, 1);
    return comm_switch_id();
}

static void test_switch_names(void **state) {
    (void)state;
    uint64_t first = switch_of("s0.s1.tux1", "switch.switch.node");
    assert_true(first != 0);
    assert_true(switch_of("s0.s1.tux9", "switch.switch.node") == first);
    assert_true(switch_of("s0.s1.tux9.site", "switch.switch.node") == first);
    assert_true(switch_of("s0.s2.tux1", "switch.switch.node") != first);
    assert_true(switch_of("s9.s1.tux1", "switch.switch.node") != first);
    assert_true(switch_of("tux1", "node") == 0);
    assert_true(switch_of("tux1", "switch.node") == 0);
    assert_true(switch_of("s0.tux1", NULL) == 0);
    assert_true(switch_of(NULL, "switch.node") == 0);
    made_up m = of_ranks(0, 1);
    switch_of("s0.s1.tux1", "switch.switch.node");
    divide(&m);
    assert_true(m.told[1] == first);
    switch_of(NULL, NULL);
}

/* Ranks on switches, as many on each, or not so. */
static void test_switches(void **state) {
    (void)state;
    static const struct {
        uint64_t leaf[RANKS];
        int32_t size, each;
    } cases[] = {{{5, 5, 6, 6}, 4, 2}, {{5, 6, 7, 8}, 4, 1}, {{5, 5, 5, 6}, 4, 3},
                 {{5, 5, 6}, 3, 2},    {{5, 5, 5, 5}, 4, 0}, {{5, 6, 6, 7}, 4, 0},
                 {{5, 6, 5, 6}, 4, 0}, {{5, 6, 6, 5}, 4, 0}, {{0, 0, 0, 0}, 4, 0},
                 {{5, 5, 0, 0}, 4, 0}, {{5}, 1, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        made_up m = of_ranks(0, cases[i].size);
        memcpy(m.leaf, cases[i].leaf, sizeof m.leaf);
        assert_int_equal(divide(&m).per_switch, cases[i].each);
    }
}

/* Bound to one core, the others are idle, but for those that another rank of this host may use. */
static void test_idle(void **state) {
    (void)state;
    made_up m = of_ranks(0, 1);
    comm_cores wide = divide(&m);
    pin();
    m = of_ranks(0, 1);
    comm_cores bound = divide(&m);
    assert_int_equal(bound.cores, 1);
    assert_int_equal(bound.threads, 1);
    assert_int_equal(bound.idle, wide.idle + wide.cores - 1);
    m = of_ranks(0, 2);
    m.others[1] = OTHER_HOST; /* its cores are not these */
    assert_int_equal(divide(&m).idle, bound.idle);
    m = of_ranks(0, 2);
    m.others[1] = OTHER_CORES;
    comm_cores apart = divide(&m);
    assert_int_equal(apart.idle, 0);
    assert_int_equal(apart.sharers, 1);
    assert_int_equal(apart.cores, 1); /* this rank's, not all that are used */
}

static void test_failure(void **state) {
    (void)state;
    made_up m = of_ranks(0, 2);
    comm_cores cores;
    sifr_error error = {0};
    m.fails = true;
    assert_int_equal(comm_divide_cores(&m.group, &cores, &error), SIFR_LOST_RANK);
    assert_string_equal(error.message, "control: rank 1 has died");
    assert_int_equal(cores.threads, 1); /* what a caller can still run with */
    assert_int_equal(cores.node, -1);
}

/* A share that lies in no node, or in none that there is, leaves this process where it is. */
static void test_settle(void **state) {
    (void)state;
    static const int32_t nodes[] = {-1, 4095, 0};
    for (int i = 0; i < 3; i++) {
        cpu_set_t after, both;
        comm_settle(&(comm_cores){.threads = 1, .node = nodes[i]});
        assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
        CPU_AND(&both, &before, &after);
        assert_true(CPU_EQUAL(&both, &after)); /* never a processor more */
        assert_true(CPU_COUNT(&after) > 0);
        if (nodes[i] != 0) assert_true(CPU_EQUAL(&before, &after));
    }
}

#define BOUND(test) cmocka_unit_test_setup_teardown(test, remember, free_again)

int main(void) {
    const struct CMUnitTest tests[] = {BOUND(test_tells),
                                       BOUND(test_shared),
                                       BOUND(test_sharers),
                                       BOUND(test_idle),
                                       cmocka_unit_test(test_switch_names),
                                       cmocka_unit_test(test_switches),
                                       BOUND(test_failure),
                                       BOUND(test_settle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
