/* The groups of a mesh, of ranks that are threads: each has the ranks that differ in its axes
 * alone, groups of tensor and context ranks are there only where the mesh has such axes, and have a
 * lane that does not wait for the bulk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "comm/transport.h"
#include "engine/groups.h"
#include "support/comm_threads.h"

enum { MOST = 16 };

typedef struct group_rank {
    comm_threads *world;
    plan_mesh mesh;
    int32_t rank;
    bool right, shared;
} group_rank;

/* Of a group: the world ranks of its members, by plan_mesh. */
static bool has_its_ranks(const group_rank *r, comm_group *group, plan_span span) {
    int32_t size = plan_mesh_ranks(&r->mesh, span);
    if (!group) return size == 1;
    if (comm_size(group) != size || comm_rank(group) != plan_mesh_place(&r->mesh, span))
        return false;
    for (int32_t m = 0; m < size; m++) {
        plan_mesh there = plan_mesh_at(&r->mesh, comm_world_rank(group, m));
        if (plan_mesh_place(&there, span) != m) return false;
        if (plan_mesh_group(&there, span) != plan_mesh_group(&r->mesh, span)) return false;
    }
    return true;
}

static void *open_all(void *argument) {
    static const plan_span spans[] = {PLAN_WORLD,    PLAN_STAGES,   PLAN_DATA,    PLAN_STATE,
                                      PLAN_REPLICAS, PLAN_CONTEXTS, PLAN_TENSORS, PLAN_HOSTS,
                                      PLAN_ALIKE,    PLAN_BATCH};
    group_rank *r = argument;
    engine_groups groups;
    comm_group *world = comm_threads_group(r->world, r->rank);
    r->right = engine_groups_open(world, &r->mesh, false, &groups, NULL) == SIFR_OK;
    for (size_t i = 0; r->right && i < sizeof spans / sizeof *spans; i++)
        r->right = has_its_ranks(r, engine_groups_at(&groups, spans[i]), spans[i]);
    comm_group *near = engine_groups_at(&groups, PLAN_TENSORS);
    engine_group_of list[ENGINE_GROUPS];
    int count = engine_groups_list(&groups, list), uses = 0;
    for (int i = 0; i < ENGINE_GROUPS; i++) uses += near && groups.of[i].group == near;
    r->shared = uses > 1;
    for (int i = 0; i < count; i++) r->right &= list[i].group != NULL;
    engine_groups_close(&groups);
    comm_close(world);
    return NULL;
}

static void opens(plan_mesh mesh) {
    pthread_t threads[MOST];
    group_rank ranks[MOST];
    int32_t count = plan_mesh_ranks(&mesh, PLAN_WORLD);
    comm_threads *world = comm_threads_create(count);
    for (int32_t r = 0; r < count; r++) {
        ranks[r] = (group_rank){.world = world, .mesh = plan_mesh_at(&mesh, r), .rank = r};
        assert_int_equal(pthread_create(&threads[r], NULL, open_all, &ranks[r]), 0);
    }
    for (int32_t r = 0; r < count; r++) pthread_join(threads[r], NULL);
    comm_threads_free(world);
    for (int32_t r = 0; r < count; r++) {
        assert_true(ranks[r].right);
        assert_false(ranks[r].shared);
    }
}

static void of_a_mesh(void **state) {
    (void)state;
    opens((plan_mesh){.ranks = {1, 1, 4, 1, 1}});
    opens((plan_mesh){.ranks = {1, 1, 1, 1, 4}}); /* the world's, but in a lane of its own */
    opens((plan_mesh){.ranks = {1, 1, 2, 2, 2}, .near = 2});
    opens((plan_mesh){.ranks = {2, 1, 2, 1, 2}});
    opens((plan_mesh){.ranks = {1, 1, 2, 1, 4}, .alike = 2});
    opens((plan_mesh){.ranks = {2, 2, 1, 2, 2}});
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_a_mesh)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
