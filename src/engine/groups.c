#include "engine/groups.h"

#include "base/assert.h"
#include "plan/schedule.h"

/* The second group of stages. */
enum { BACK = ENGINE_GROUPS - 1 };

static const plan_span spans[ENGINE_GROUPS] = {
    PLAN_WORLD,   PLAN_STAGES, PLAN_DATA,  PLAN_STATE, PLAN_REPLICAS, PLAN_CONTEXTS,
    PLAN_TENSORS, PLAN_HOSTS,  PLAN_ALIKE, PLAN_BATCH, PLAN_STAGES};
static const char *const names[ENGINE_GROUPS] = {"world",   "stage",   "data",      "shard",
                                                 "replica", "context", "tensor",    "host",
                                                 "alike",   "batch",   "stage back"};

/* What a step waits for overtakes what it moves beside computing. */
static comm_lane lane_of(int index) {
    return plan_queue_of_span(spans[index]) == PLAN_NEAR ? COMM_NEAR : COMM_BULK;
}

/* Whether the group of the world, or an earlier one, can do its work. */
static bool may_share(int index) {
    return spans[index] != PLAN_STAGES && spans[index] != PLAN_HOSTS && lane_of(index) == COMM_BULK;
}

engine_groups engine_groups_flat(comm_group *world) {
    engine_groups groups = {0};
    for (int i = 0; i < ENGINE_GROUPS; i++) {
        bool alone = spans[i] == PLAN_REPLICAS || !may_share(i);
        groups.of[i] = (engine_group_of){spans[i], alone ? NULL : world};
    }
    return groups;
}

/* Whether the one span covers the other and has no more ranks; that of the batch covers none before
 * it, and is one of these where axes have one rank. */
static bool has_same(const plan_mesh *mesh, plan_span span, plan_span of) {
    bool covers = (span & of) == of || ((span & of) == span && of == PLAN_BATCH);
    return covers && plan_mesh_ranks(mesh, span) == plan_mesh_ranks(mesh, of);
}

/* An earlier group with the same ranks, in the same lane. Stages send to each other, so theirs are
 * never shared. */
static comm_group *find_same(const engine_groups *groups, const plan_mesh *mesh, int index) {
    if (!may_share(index)) return NULL;
    for (int i = 0; i < index; i++) {
        if (may_share(i) && has_same(mesh, spans[i], spans[index])) return groups->of[i].group;
    }
    return NULL;
}

static sifr_status open_one(comm_group *world, const plan_mesh *mesh, engine_groups *groups,
                            int index, sifr_error *error) {
    comm_group **out = &groups->of[index].group;
    comm_part part = {.name = names[index],
                      .color = plan_mesh_group(mesh, spans[index]),
                      .key = plan_mesh_place(mesh, spans[index]),
                      .lane = lane_of(index),
                      .peers = spans[index] == PLAN_STAGES};
    base_assert(part.key >= 0 && part.key < plan_mesh_ranks(mesh, spans[index]));
    *out = index == 0 ? world : find_same(groups, mesh, index);
    if (*out || plan_mesh_ranks(mesh, spans[index]) == 1) return SIFR_OK;
    return comm_split(world, &part, out, error);
}

sifr_status engine_groups_open(comm_group *world, const plan_mesh *mesh, bool back,
                               engine_groups *out, sifr_error *error) {
    base_assert(comm_size(world) == plan_mesh_ranks(mesh, PLAN_WORLD));
    sifr_status status = SIFR_OK;
    *out = (engine_groups){0};
    for (int i = 0; i < ENGINE_GROUPS; i++) out->of[i].span = spans[i];
    for (int i = 0; i < ENGINE_GROUPS - !back && status == SIFR_OK; i++)
        status = open_one(world, mesh, out, i, error);
    if (status != SIFR_OK) engine_groups_close(out);
    return status;
}

void engine_groups_close(engine_groups *groups) {
    engine_group_of list[ENGINE_GROUPS];
    int count = engine_groups_list(groups, list);
    base_assert(count == 0 || list[0].span == PLAN_WORLD); /* which the caller closes */
    for (int i = count - 1; i > 0; i--) comm_close(list[i].group);
    *groups = (engine_groups){0};
}

comm_group *engine_groups_at(const engine_groups *groups, plan_span span) {
    for (int i = 0; i < ENGINE_GROUPS; i++)
        if (groups->of[i].span == span) return groups->of[i].group;
    return NULL;
}

comm_group *engine_groups_back(const engine_groups *groups) {
    return groups->of[BACK].group;
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

void engine_groups_label(const engine_groups *groups, const comm_label *label) {
    engine_group_of list[ENGINE_GROUPS];
    int count = engine_groups_list(groups, list);
    for (int i = 0; i < count; i++) comm_set_label(list[i].group, label);
}

sifr_status engine_groups_follow(const engine_groups *groups, device *dev,
                                 const comm_operands *operands, sifr_error *error) {
    engine_group_of list[ENGINE_GROUPS];
    int count = engine_groups_list(groups, list);
    for (int i = 1; i < count; i++) {
        comm_operands own = operands ? *operands : (comm_operands){0};
        if (list[i].span == PLAN_STAGES)
            own.largest = own.parts = 0;
        else
            own.sends = 0;
        BASE_TRY(comm_use_device(list[i].group, dev, &own, error));
    }
    return SIFR_OK;
}
