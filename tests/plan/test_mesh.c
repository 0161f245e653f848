/* The mesh of ranks: places, groups, and what crosses hosts, beside a count over all ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/mesh.h"

static const plan_span spans[] = {PLAN_REPLICAS, PLAN_STATE, PLAN_DATA,   PLAN_WORLD, PLAN_CONTEXTS,
                                  PLAN_TENSORS,  PLAN_HOSTS, PLAN_STAGES, PLAN_ALIKE};

/* Has every axis, so that an order of axes shows. */
static plan_mesh full(void) {
    return (plan_mesh){.ranks = {2, 3, 4, 2, 5}};
}

static void places(void **state) {
    (void)state;
    plan_mesh mesh = full();
    int32_t world = plan_mesh_ranks(&mesh, PLAN_WORLD), rank = 0;
    assert_int_equal(world, 240);
    for (int32_t s = 0; s < 2; s++)
        for (int32_t r = 0; r < 3; r++)
            for (int32_t h = 0; h < 4; h++)
                for (int32_t c = 0; c < 2; c++)
                    for (int32_t t = 0; t < 5; t++, rank++) {
                        const int32_t place[] = {s, r, h, c, t};
                        plan_mesh at = plan_mesh_at(&mesh, rank);
                        assert_memory_equal(at.place, place, sizeof place);
                        assert_memory_equal(at.ranks, mesh.ranks, sizeof mesh.ranks);
                        assert_int_equal(plan_mesh_place(&at, PLAN_WORLD), rank);
                        assert_int_equal(plan_mesh_place(&at, PLAN_DATA), r * 4 + h);
                        assert_int_equal(plan_mesh_place(&at, PLAN_STATE), h * 2 + c);
                        assert_int_equal(plan_mesh_place(&at, PLAN_REPLICAS), r);
                    }
    assert_int_equal(plan_mesh_ranks(&mesh, PLAN_DATA), 12);
    assert_int_equal(plan_mesh_ranks(&mesh, PLAN_STATE), 8);
    assert_int_equal(plan_mesh_ranks(&mesh, PLAN_REPLICAS), 3);
}

/* The groups of a span divide the world, and a rank's place in its group rises with its number. */
static void groups(void **state) {
    (void)state;
    plan_mesh mesh = full();
    mesh.near = 2, mesh.alike = 5;
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
        int32_t members[240] = {0}, size = plan_mesh_ranks(&mesh, spans[i]);
        for (int32_t r = 0; r < 240; r++) {
            plan_mesh at = plan_mesh_at(&mesh, r);
            int32_t group = plan_mesh_group(&at, spans[i]);
            assert_in_range(group, 0, 240 / size - 1);
            assert_int_equal(plan_mesh_place(&at, spans[i]), members[group]++);
        }
        for (int32_t g = 0; g < 240 / size; g++) assert_int_equal(members[g], size);
    }
}

static bool crosses(const plan_mesh *mesh, plan_span span, int32_t here) {
    int32_t world = plan_mesh_ranks(mesh, PLAN_WORLD), host[240];
    memset(host, -1, sizeof host);
    for (int32_t r = 0; r < world; r++) {
        plan_mesh at = plan_mesh_at(mesh, r);
        int32_t *of = &host[plan_mesh_group(&at, span)];
        if (*of >= 0 && *of != r / here) return true;
        *of = r / here;
    }
    return false;
}

static void hosts(void **state) {
    (void)state;
    plan_mesh meshes[] = {full(),
                          plan_mesh_flat(12, 0),
                          plan_mesh_flat(1, 0),
                          {.ranks = {1, 3, 4, 1, 1}},
                          {.ranks = {1, 4, 2, 1, 1}},
                          {.ranks = {2, 2, 2, 1, 3}},
                          {.ranks = {1, 2, 2, 3, 2}, .near = 3},
                          {.ranks = {2, 1, 6, 1, 2}, .near = 2},
                          {.ranks = {1, 2, 2, 1, 6}, .alike = 2}};
    for (size_t m = 0; m < sizeof meshes / sizeof *meshes; m++)
        for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
            for (int32_t here = 1; here <= 250; here++)
                assert_int_equal(plan_mesh_crosses(&meshes[m], spans[i], here),
                                 crosses(&meshes[m], spans[i], here));
            assert_false(plan_mesh_crosses(&meshes[m], spans[i], 0));
        }
}

static void neighbours(void **state) {
    (void)state;
    plan_mesh mesh = {.ranks = {1, 2, 4, 1, 1}, .place = {0, 1, 2, 0, 0}};
    assert_int_equal(plan_mesh_neighbours(&mesh, PLAN_STATE, 4), 4);
    assert_int_equal(plan_mesh_neighbours(&mesh, PLAN_REPLICAS, 4), 1);
    assert_int_equal(plan_mesh_neighbours(&mesh, PLAN_STATE, 2), 2);
    assert_int_equal(plan_mesh_neighbours(&mesh, PLAN_REPLICAS, 0), 2);
    assert_int_equal(plan_mesh_neighbours(&mesh, PLAN_WORLD, 3), 2); /* the last host has two */
}

static const char *where(const plan_mesh *mesh, int32_t host, int32_t node, int32_t leaf) {
    static char text[PLAN_MESH_LENGTH];
    return plan_mesh_places_text(mesh, &(plan_places){host, node, leaf}, text);
}

static void said(void **state) {
    (void)state;
    plan_mesh mesh = {.ranks = {1, 2, 4, 1, 1}, .place = {0, 1, 2, 0, 0}};
    assert_string_equal(where(&mesh, 4, 0, 0), "replicas between hosts, shards inside a host");
    assert_string_equal(where(&mesh, 2, 0, 0), "replicas between hosts, shards between hosts");
    assert_string_equal(where(&mesh, 0, 0, 0), "all on one host");
    assert_string_equal(where(&mesh, 8, 8, 0), "all on one host");
    assert_string_equal(where(&mesh, 0, 4, 0), "all on one host, replicas between NUMA nodes, "
                                               "shards inside a NUMA node");
    assert_string_equal(where(&mesh, 4, 2, 0), "replicas between hosts, shards between NUMA nodes");
    assert_string_equal(where(&mesh, 1, 0, 4),
                        "replicas between switches, shards between hosts of a switch");
    plan_mesh stages = {.ranks = {2, 2, 2, 1, 1}};
    assert_string_equal(where(&stages, 2, 1, 4),
                        "stages between switches, replicas between hosts of a switch, "
                        "shards between NUMA nodes");
    plan_mesh full = {.ranks = {2, 2, 2, 2, 2}}; /* the longest fits */
    assert_true(strlen(where(&full, 1, 1, 16)) < PLAN_MESH_LENGTH - 1);
    assert_non_null(strstr(where(&full, 1, 1, 16), "tensors between hosts of a switch"));
}

static void made(void **state) {
    (void)state;
    plan_mesh mesh;
    sifr_error error = {0};
    char text[PLAN_MESH_LENGTH];
    assert_int_equal(plan_mesh_make(8, 6, 4, &mesh, &error), SIFR_OK);
    assert_int_equal(plan_mesh_ranks(&mesh, PLAN_STATE), 4);
    assert_int_equal(plan_mesh_place(&mesh, PLAN_STATE), 2);
    assert_int_equal(plan_mesh_place(&mesh, PLAN_REPLICAS), 1);
    assert_string_equal(plan_mesh_text(&mesh, text), "2 replicas x 4 shards");
    assert_int_equal(plan_mesh_make(8, 6, 8, &mesh, &error), SIFR_OK);
    plan_mesh flat = plan_mesh_flat(8, 6);
    assert_memory_equal(&mesh, &flat, sizeof mesh);
    assert_int_equal(plan_mesh_make(8, 6, 0, &mesh, &error), SIFR_OK);
    assert_memory_equal(&mesh, &flat, sizeof mesh);
    assert_int_equal(plan_mesh_make(12, 0, 5, &mesh, &error), SIFR_USAGE);
    assert_string_equal(error.message, "shard_size 5: 12 ranks are not divided into groups of that "
                                       "many; give 2, 3, 4, 6 or 12");
    assert_int_equal(plan_mesh_make(12, 0, 1, &mesh, &error), SIFR_USAGE);
    assert_int_equal(plan_mesh_make(12, 0, 24, &mesh, &error), SIFR_USAGE);
    assert_int_equal(plan_mesh_make(1, 0, 2, &mesh, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "leave it out"));
}

/* Copies within each stage of a pipeline. */
static void made_with_stages(void **state) {
    (void)state;
    plan_mesh mesh;
    sifr_error error = {0};
    char text[PLAN_MESH_LENGTH];
    sifr_settings settings = {.pipeline.stages = 2, .mesh.shard_size = 2};
    for (int32_t r = 0; r < 8; r++) {
        assert_int_equal(plan_mesh_of(&settings, 8, r, &mesh, &error), SIFR_OK);
        const int32_t place[] = {r / 4, r / 2 % 2, r % 2, 0, 0};
        assert_memory_equal(mesh.place, place, sizeof place);
        assert_int_equal(plan_mesh_place(&mesh, PLAN_WORLD), r);
    }
    assert_string_equal(plan_mesh_text(&mesh, text), "2 stages x 2 replicas x 2 shards");
    settings.mesh.shard_size = 8;
    assert_int_equal(plan_mesh_of(&settings, 8, 0, &mesh, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "give 2 or 4"));
    settings.pipeline.stages = 3;
    assert_int_equal(plan_mesh_of(&settings, 8, 0, &mesh, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "3 stages, which do not divide 8 ranks"));
}

/* Each number of the message's last words is one that works in the place of what was refused. */
static void what_is_named_works(void **state) {
    (void)state;
    for (int32_t ranks = 1; ranks <= 24; ranks++) {
        for (int32_t stages = 1; stages <= ranks + 1; stages++) {
            for (int32_t size = 0; size <= ranks + 1; size++) {
                plan_mesh mesh;
                sifr_error error = {0};
                sifr_settings settings = {.pipeline.stages = stages, .mesh.shard_size = size};
                if (plan_mesh_of(&settings, ranks, 0, &mesh, &error) == SIFR_OK) {
                    assert_int_equal(plan_mesh_ranks(&mesh, PLAN_WORLD), ranks);
                    assert_int_equal(plan_mesh_ranks(&mesh, PLAN_STAGES), stages);
                    if (size) assert_int_equal(plan_mesh_ranks(&mesh, PLAN_STATE), size);
                    continue;
                }
                const char *at = strstr(error.message, "give ");
                int32_t found = 0;
                for (at = at ? at + 5 : ""; *at; at += strcspn(at, "0123456789")) {
                    char *end;
                    sifr_settings other = settings;
                    int32_t number = (int32_t)strtol(at, &end, 10);
                    if (ranks % stages)
                        other.pipeline.stages = number, other.mesh.shard_size = 0;
                    else
                        other.mesh.shard_size = number;
                    if (plan_mesh_of(&other, ranks, 0, &mesh, NULL) != SIFR_OK)
                        fail_msg("%d ranks: %s", ranks, error.message);
                    at = end;
                    found++;
                }
                bool alone = ranks % stages ? ranks == 1 : ranks == stages;
                assert_int_equal(found > 0, !alone);
                if (alone)
                    assert_true(strstr(error.message, "more") || strstr(error.message, "leave"));
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(places),
                                       cmocka_unit_test(groups),
                                       cmocka_unit_test(hosts),
                                       cmocka_unit_test(neighbours),
                                       cmocka_unit_test(said),
                                       cmocka_unit_test(made),
                                       cmocka_unit_test(made_with_stages),
                                       cmocka_unit_test(what_is_named_works)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
