/* The groups of ranks that a mesh makes of the world: one for each span of its axes. */
#ifndef ENGINE_GROUPS_H
#define ENGINE_GROUPS_H

#include "comm/comm.h"
#include "plan/mesh.h"

enum { ENGINE_GROUPS = 11 };

typedef struct engine_group_of {
    plan_span span;
    comm_group *group; /* NULL: this rank alone */
} engine_group_of;

/* Several spans may share one group: that of all ranks, if each covers the world. Stages have a
 * group of their own, and may have a second one for transfers in the other direction. */
typedef struct engine_groups {
    engine_group_of of[ENGINE_GROUPS]; /* first that of PLAN_WORLD, which is borrowed */
} engine_groups;

/* The groups of plain ZeRO: only the world, whose ranks are shards of one copy. */
engine_groups engine_groups_flat(comm_group *world);

/* All ranks of the world call it, with the same mesh. `back`: with the second group of stages. */
sifr_status engine_groups_open(comm_group *world, const plan_mesh *mesh, bool back,
                               engine_groups *out, sifr_error *error) SIFR_MUST_CHECK;
/* Harmless on a zeroed one. */
void engine_groups_close(engine_groups *groups);

/* This rank's group of a span (plan_mesh_ranks). */
comm_group *engine_groups_at(const engine_groups *groups, plan_span span);
comm_group *engine_groups_back(const engine_groups *groups); /* NULL: none */

/* The groups without repetition, the world first; returns their number. */
int engine_groups_list(const engine_groups *groups, engine_group_of out[ENGINE_GROUPS]);

/* Sets the label of all of them. */
void engine_groups_label(const engine_groups *groups, const comm_label *label);

/* Calls comm_use_device for all groups but the world, after the world's windows were opened; with a
 * NULL device and operands, before they are closed. Stages send, and have no other transfers. */
sifr_status engine_groups_follow(const engine_groups *groups, device *dev,
                                 const comm_operands *operands, sifr_error *error) SIFR_MUST_CHECK;

#endif
