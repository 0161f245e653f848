/* Cores shared by ranks, on machines that hwloc makes up. */
#include "base/topology.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static hwloc_topology_t machine(const char *description) {
    hwloc_topology_t topology;
    assert_int_equal(hwloc_topology_init(&topology), 0);
    assert_int_equal(hwloc_topology_set_synthetic(topology, description), 0);
    assert_int_equal(hwloc_topology_load(topology), 0);
    return topology;
}

/* processors: those that may be used, as hwloc writes them ("0-3,8"). */
static void check(const char *description, const char *processors, double quota, int32_t index,
                  int32_t count, int32_t threads, int32_t node) {
    hwloc_topology_t topology = machine(description);
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    assert_int_equal(hwloc_bitmap_list_sscanf(set, processors), 0);
    base_core_share share = base_topology_divide(topology, set, quota, index, count);
    assert_int_equal(share.threads, threads);
    assert_int_equal(share.node, node);
    hwloc_bitmap_free(set);
    hwloc_topology_destroy(topology);
}

static const char plain[] = "node:1 core:8 pu:1", twin[] = "node:1 core:4 pu:2",
                  two[] = "node:2 core:4 pu:1", four[] = "node:4 core:4 pu:2";

static void test_one_node(void **state) {
    (void)state;
    check(plain, "0-7", 0, 0, 1, 8, -1);
    check(plain, "0-7", 0, 1, 2, 4, -1);
    check(plain, "0-7", 0, 2, 3, 2, -1);
    check(plain, "0-7", 0, 9, 16, 1, -1);
    check(plain, "2-4", 0, 0, 1, 3, -1);
    check(plain, "5", 0, 1, 2, 1, -1);
}

/* Two processors of one core are one thread's. */
static void test_cores(void **state) {
    (void)state;
    check(twin, "0-7", 0, 0, 1, 4, -1);
    check(twin, "0-7", 0, 0, 2, 2, -1);
    check(twin, "0,1", 0, 0, 1, 1, -1);
    check(twin, "1,2", 0, 0, 1, 2, -1);
}

static void test_quota(void **state) {
    (void)state;
    check(plain, "0-7", 3.5, 0, 1, 3, -1);
    check(plain, "0-7", 0.5, 0, 1, 1, -1);
    check(plain, "0-7", 4, 1, 4, 1, -1);
    check(plain, "0-7", 100, 0, 2, 4, -1);
}

static void test_nodes(void **state) {
    (void)state;
    check(two, "0-7", 0, 0, 1, 8, -1); /* one rank has both */
    check(two, "0-7", 0, 0, 2, 4, 0);
    check(two, "0-7", 0, 1, 2, 4, 1);
    check(two, "0-7", 0, 1, 4, 2, 0);
    check(two, "0-7", 0, 2, 4, 2, 1);
    check(two, "0-7", 0, 1, 3, 2, -1); /* does not come out even */
    check(two, "0-7", 0, 3, 16, 1, -1);
    check(two, "0-3", 0, 1, 2, 2, -1); /* one node's cores only */
    check(two, "0-5", 0, 1, 2, 2, 1);  /* two of its cores are another's */
    check(four, "0-31", 0, 5, 8, 2, 2);
    check(four, "8-15,24-31", 0, 1, 2, 4, 3); /* of the nodes 1 and 3 */
}

/* How many of the ranks lie on each node; 0: they lie on several. */
static void per_node(const char *description, const char *processors, int32_t count,
                     int32_t wanted) {
    hwloc_topology_t topology = machine(description);
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    assert_int_equal(hwloc_bitmap_list_sscanf(set, processors), 0);
    for (int32_t i = 0; i < count; i++)
        assert_int_equal(base_topology_divide(topology, set, 0, i, count).per_node, wanted);
    hwloc_bitmap_free(set);
    hwloc_topology_destroy(topology);
}

static void test_ranks_of_nodes(void **state) {
    (void)state;
    per_node(two, "0-7", 4, 2);
    per_node(two, "0-7", 2, 1);
    per_node(two, "0-7", 3, 0);
    per_node(two, "0-7", 16, 0);
    per_node(two, "0-3", 2, 0);
    per_node(plain, "0-7", 4, 0);
    per_node(four, "0-31", 8, 2);
    assert_in_range(base_topology_ranks_per_node(4), 0, 4);
    assert_int_equal(base_topology_ranks_per_node(1), 0);
}

static void test_this_machine(void **state) {
    (void)state;
    hwloc_topology_t topology;
    sifr_error error;
    assert_int_equal(base_topology_load(&topology, &error), SIFR_OK);
    assert_true(base_topology_cores(topology, hwloc_topology_get_topology_cpuset(topology)) >= 1);
    hwloc_topology_destroy(topology);
}

/* Ranks that share this process's cores have at least one thread each, and no more than it has
 * processors. */
static void test_threads(void **state) {
    (void)state;
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    int32_t alone = base_topology_threads(1), last = alone;
    assert_in_range(alone, 1, CPU_COUNT(&all));
    for (int32_t ranks = 2; ranks <= 16; ranks *= 2) {
        int32_t threads = base_topology_threads(ranks);
        assert_in_range(threads, 1, last);
        assert_true(threads * ranks <= alone || threads == 1);
        last = threads;
    }
    assert_int_equal(base_topology_threads(100000), 1);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    int32_t bound = base_topology_threads(1);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_int_equal(bound, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_node),       cmocka_unit_test(test_cores),
        cmocka_unit_test(test_quota),          cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_ranks_of_nodes), cmocka_unit_test(test_this_machine),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
