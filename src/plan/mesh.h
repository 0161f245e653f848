/* The mesh of ranks: five axes along which a run is split, and a rank's place on each.
 *
 *     world rank = (((stage x replicas + replica) x shards + shard) x contexts + context)
 *                  x tensors + tensor
 *
 * Neighbours on the innermost axis are neighbours in the world, so they share a host where the
 * launcher fills host by host. */
#ifndef PLAN_MESH_H
#define PLAN_MESH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"
#include "sifr/settings.h"

/* From the outermost to the innermost. */
typedef enum plan_axis {
    PLAN_AXIS_STAGE,   /* which units of the model a rank computes */
    PLAN_AXIS_REPLICA, /* copies of all that ZeRO cuts */
    PLAN_AXIS_SHARD,   /* slices of one copy */
    PLAN_AXIS_CONTEXT, /* which tokens of a sequence */
    PLAN_AXIS_TENSOR,  /* which part of a weight */
    PLAN_AXES
} plan_axis;

const char *plan_axis_name(plan_axis axis);

/* The axes over which something is split or added up. */
typedef enum plan_span {
    PLAN_STAGES = 1 << PLAN_AXIS_STAGE,
    PLAN_REPLICAS = 1 << PLAN_AXIS_REPLICA,
    /* What ZeRO cuts into slices; ranks of other contexts have equal weights. */
    PLAN_STATE = 1 << PLAN_AXIS_SHARD | 1 << PLAN_AXIS_CONTEXT,
    /* The global batch, its losses and its labels. */
    PLAN_DATA = 1 << PLAN_AXIS_REPLICA | 1 << PLAN_AXIS_SHARD,
    /* Who make a part each of the global batch's gradients. */
    PLAN_BATCH = PLAN_DATA | 1 << PLAN_AXIS_CONTEXT,
    PLAN_CONTEXTS = 1 << PLAN_AXIS_CONTEXT, /* what attention of a whole sequence needs */
    PLAN_TENSORS = 1 << PLAN_AXIS_TENSOR,   /* parts of one value: sums, and values that are cut */
    PLAN_WORLD = (1 << PLAN_AXES) - 1,
    /* Neighbours of PLAN_STATE that keep a second copy of weights among them; no axis, but whole
     * runs of plan_mesh.near places. */
    PLAN_HOSTS = 1 << PLAN_AXES,
    /* Neighbours of PLAN_TENSORS that have the same kv heads, where there are fewer of these; no
     * axis, but whole runs of plan_mesh.alike places. */
    PLAN_ALIKE = 1 << (PLAN_AXES + 1)
} plan_span;

typedef struct plan_mesh {
    int32_t ranks[PLAN_AXES]; /* the length of each axis, at least 1 */
    int32_t place[PLAN_AXES]; /* of this rank */
    int32_t near;  /* ranks of a group of PLAN_HOSTS, which divide those of PLAN_STATE; 0: there is
                      no such group */
    int32_t alike; /* ranks of a group of PLAN_ALIKE, which divide those of PLAN_TENSORS; 0: there
                      is no such group. It follows from the model: plan_lower sets it. */
    int32_t host;  /* of PLAN_STATE, as many neighbours on each host; 0: one host, one rank on each,
                      or uneven ones */
} plan_mesh;

/* The mesh of plain ZeRO: all ranks are shards of one copy. */
plan_mesh plan_mesh_flat(int32_t ranks, int32_t rank);

/* The mesh with copies of the state, each cut over `shard_size` neighbours; 0: one copy, as
 * plan_mesh_flat. SIFR_USAGE if it is 1 or does not divide the ranks. */
sifr_status plan_mesh_make(int32_t ranks, int32_t rank, int32_t shard_size, plan_mesh *out,
                           sifr_error *error) SIFR_MUST_CHECK;

/* The mesh of settings.pipeline.stages stages, each with settings.mesh.shard_size, at ZeRO stage 3
 * with settings.zero.hpz_partition_size neighbours that keep a second copy. */
sifr_status plan_mesh_of(const sifr_settings *settings, int32_t ranks, int32_t rank, plan_mesh *out,
                         sifr_error *error) SIFR_MUST_CHECK;

/* plan_mesh.near of a mesh: hpz_partition_size, at ZeRO stage 3. 0 where it does not divide the
 * ranks of PLAN_STATE, and where it is all of them, who gather no less without a second copy. */
int32_t plan_mesh_near(const sifr_zero *zero, const plan_mesh *mesh);

/* Sets mesh->host: hosts of as many ranks each, numbered host by host; 0: it is not known. */
void plan_mesh_place_hosts(plan_mesh *mesh, int32_t ranks_per_host);

/* SIFR_USAGE where groups of PLAN_HOSTS neither lie in one host, of `ranks_per_host` ranks (0: one
 * host), nor hold whole ones. */
sifr_status plan_mesh_check_near(const plan_mesh *mesh, int32_t ranks_per_host,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* The same mesh as seen by another rank of the world. */
plan_mesh plan_mesh_at(const plan_mesh *mesh, int32_t rank);

/* This rank's group of a span: the ranks whose places differ from its own only on axes of the span.
 * How many they are, and the number of this rank among them. */
int32_t plan_mesh_ranks(const plan_mesh *mesh, plan_span span);
int32_t plan_mesh_place(const plan_mesh *mesh, plan_span span);

/* The number of this rank's group among all groups of a span. */
int32_t plan_mesh_group(const plan_mesh *mesh, plan_span span);

/* Whether some group of the span has ranks on several hosts, of `ranks_per_host` ranks each (0: one
 * host). */
bool plan_mesh_crosses(const plan_mesh *mesh, plan_span span, int32_t ranks_per_host);

/* SIFR_USAGE where tensor ranks are not neighbours on one host: they meet twice in each block. */
sifr_status plan_mesh_check_hosts(const plan_mesh *mesh, int32_t ranks_per_host,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* How many ranks of this rank's group are on its host, this one included. */
int32_t plan_mesh_neighbours(const plan_mesh *mesh, plan_span span, int32_t ranks_per_host);

enum { PLAN_MESH_LENGTH = 192 };
/* The axes that have several ranks: "2 replicas x 4 shards"; and this rank's place on them:
 * "replica 1, shard 3". */
const char *plan_mesh_text(const plan_mesh *mesh, char out[PLAN_MESH_LENGTH]);
const char *plan_mesh_place_text(const plan_mesh *mesh, char out[PLAN_MESH_LENGTH]);
/* How many ranks each host, NUMA node and network switch has, one behind the other; 0: there is
 * one, or it is not known. */
typedef struct plan_places {
    int32_t per_host, per_node, per_switch;
} plan_places;
/* Where each of these axes is: "replicas between hosts, shards inside a host", or "all on one
 * host". Where nodes and switches are known, an axis is inside or between them. */
const char *plan_mesh_places_text(const plan_mesh *mesh, const plan_places *places,
                                  char out[PLAN_MESH_LENGTH]);
/* "stages", "shards", "replicas", "data", "batch", "contexts", "tensors", "host", "alike" or
 * "world" */
const char *plan_span_name(plan_span span);

#endif
