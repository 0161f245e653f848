#include "engine/groups.h"

static const plan_span spans[ENGINE_GROUPS] = {PLAN_WORLD, PLAN_STAGES, PLAN_DATA, PLAN_STATE,
                                               PLAN_REPLICAS};
static const char *const names[ENGINE_GROUPS] = {"world", "stage", "data", "shard", "replica"};

engine_groups engine_groups_flat(comm_group *world) {
    engine_groups groups = {0};
    for (int i = 0; i < ENGINE_GROUPS; i++) {
        bool alone = spans[i] == PLAN_REPLICAS || spans[i] == PLAN_STAGES;
        groups.of[i] = (engine_group_of){spans[i], alone ? NULL : world};
    }
    return groups;
}

/* An earlier group with the same ranks. */
static comm_group *find_same(const engine_groups *groups, const plan_mesh *mesh, int index) {
    for (int i = 0; i < index; i++) {
        bool covers = (spans[i] & spans[index]) == spans[index] && spans[i] != PLAN_STAGES;
        if (covers && plan_mesh_ranks(mesh, spans[i]) == plan_mesh_ranks(mesh, spans[index]))
            return groups->of[i].group;
    }
    return NULL;
}

static comm_part part_of(const plan_mesh *mesh, int index) {
    return (comm_part){.name = names[index],
                       .color = plan_mesh_group(mesh, spans[index]),
                       .key = plan_mesh_place(mesh, spans[index]),
                       .peers = spans[index] == PLAN_STAGES};
}

/* Stages send to each other, so theirs is a group of its own. */
static sifr_status open_one(comm_group *world, const plan_mesh *mesh, engine_groups *groups,
                            int index, sifr_error *error) {
    comm_part part = part_of(mesh, index);
    comm_group **out = &groups->of[index].group;
    groups->of[index].span = spans[index];
    *out = index == 0 ? world : part.peers ? NULL : find_same(groups, mesh, index);
    if (*out || plan_mesh_ranks(mesh, spans[index]) == 1) return SIFR_OK;
    return comm_split(world, &part, out, error);
}

sifr_status engine_groups_open(comm_group *world, const plan_mesh *mesh, bool back,
                               engine_groups *out, sifr_error *error) {
    sifr_status status = SIFR_OK;
    *out = (engine_groups){0};
    for (int i = 0; i < ENGINE_GROUPS && status == SIFR_OK; i++)
        status = open_one(world, mesh, out, i, error);
    comm_part part = part_of(mesh, 1);
    part.name = "stage back";
    if (status == SIFR_OK && back) status = comm_split(world, &part, &out->back, error);
    if (status != SIFR_OK) engine_groups_close(out);
    return status;
}

void engine_groups_close(engine_groups *groups) {
    engine_group_of list[ENGINE_GROUPS];
    int count = engine_groups_list(groups, list);
    comm_close(groups->back);
    for (int i = count - 1; i > 0; i--) comm_close(list[i].group);
    *groups = (engine_groups){0};
}

comm_group *engine_groups_at(const engine_groups *groups, plan_span span) {
    for (int i = 0; i < ENGINE_GROUPS; i++)
        if (groups->of[i].span == span) return groups->of[i].group;
    return NULL;
}

int engine_groups_list(const engine_groups *groups, engine_group_of out[ENGINE_GROUPS]) {
    int count = 0;
    for (int i = 0; i < ENGINE_GROUPS; i++) {
        bool listed = groups->of[i].group == NULL;
        for (int j = 0; j < count; j++) listed |= out[j].group == groups->of[i].group;
        if (!listed) out[count++] = groups->of[i];
    }
    return count;
}

comm_ledger engine_groups_ledger(const engine_groups *groups) {
    engine_group_of list[ENGINE_GROUPS];
    comm_ledger sum = {0};
    int count = engine_groups_list(groups, list);
    for (int i = 0; i <= count; i++) {
        comm_group *group = i < count ? list[i].group : groups->back;
        if (!group) continue;
        const comm_ledger *one = comm_get_ledger(group);
        for (int o = 0; o < COMM_OPERATIONS; o++) {
            sum.operation[o].calls += one->operation[o].calls;
            sum.operation[o].bytes += one->operation[o].bytes;
            sum.operation[o].crossed += one->operation[o].crossed;
            sum.operation[o].seconds += one->operation[o].seconds;
        }
    }
    return sum;
}

void engine_groups_label(const engine_groups *groups, const comm_label *label) {
    engine_group_of list[ENGINE_GROUPS];
    int count = engine_groups_list(groups, list);
    for (int i = 0; i < count; i++) comm_set_label(list[i].group, label);
    if (groups->back) comm_set_label(groups->back, label);
}

sifr_status engine_groups_use_device(const engine_groups *groups, device *dev, int64_t largest,
                                     sifr_error *error) {
    engine_group_of list[ENGINE_GROUPS];
    int count = engine_groups_list(groups, list);
    for (int i = 0; i < count; i++) BASE_TRY(comm_use_device(list[i].group, dev, largest, error));
    return groups->back ? comm_use_device(groups->back, dev, largest, error) : SIFR_OK;
}
