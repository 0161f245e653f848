#include "plan/mesh.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/text.h"

const char *plan_axis_name(plan_axis axis) {
    base_assert((int)axis >= 0 && axis < PLAN_AXES);
    static const char *const names[] = {"stage", "replica", "shard", "context", "tensor"};
    return names[axis];
}

/* `rank` as the number whose digits are the places. */
static void find_places(plan_mesh *mesh, int32_t rank) {
    base_assert(rank >= 0);
    for (int a = PLAN_AXES - 1; a >= 0; a--) {
        mesh->place[a] = rank % mesh->ranks[a];
        rank /= mesh->ranks[a];
    }
}

plan_mesh plan_mesh_flat(int32_t ranks, int32_t rank) {
    base_assert(rank >= 0 && rank < ranks);
    return (plan_mesh){.ranks = {1, 1, ranks, 1, 1}, .place = {0, 0, rank, 0, 0}};
}

sifr_status plan_mesh_make(int32_t ranks, int32_t rank, int32_t shard_size, plan_mesh *out,
                           sifr_error *error) {
    char sizes[128];
    *out = plan_mesh_flat(ranks, rank);
    if (shard_size == 0) return SIFR_OK;
    if (shard_size < 2 || ranks % shard_size)
        return base_fail(error, SIFR_USAGE,
                         "shard_size %d: %d ranks are not divided into groups of that many; %s%s",
                         (int)shard_size, (int)ranks, ranks > 1 ? "give " : "leave it out",
                         ranks > 1 ? base_format_divisors(ranks, sizes, sizeof sizes) : "");
    out->ranks[PLAN_AXIS_SHARD] = shard_size;
    out->ranks[PLAN_AXIS_REPLICA] = ranks / shard_size;
    find_places(out, rank);
    return SIFR_OK;
}

int32_t plan_mesh_near(const sifr_zero *zero, const plan_mesh *mesh) {
    int64_t size = zero->hpz_partition_size, all = plan_mesh_ranks(mesh, PLAN_STATE);
    return zero->stage == 3 && size > 1 && size < all && all % size == 0 ? (int32_t)size : 0;
}

void plan_mesh_place_hosts(plan_mesh *mesh, int32_t ranks_per_host) {
    int32_t all = plan_mesh_ranks(mesh, PLAN_STATE), each = mesh->ranks[PLAN_AXIS_TENSOR];
    int32_t here = ranks_per_host > 0 && ranks_per_host % each == 0 ? ranks_per_host / each : 0;
    mesh->host = here > 1 && here < all && all % here == 0 ? here : 0;
}

static sifr_status set_near(const sifr_zero *zero, plan_mesh *mesh, sifr_error *error) {
    char sizes[128];
    int64_t size = zero->hpz_partition_size, all = plan_mesh_ranks(mesh, PLAN_STATE);
    mesh->near = plan_mesh_near(zero, mesh);
    if (zero->stage < 3 || size <= 1 || all % size == 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "zero_hpz_partition_size %lld: %lld rank%s share%s the state, which are not "
                     "divided into groups of that many; %s%s%s",
                     (long long)size, (long long)all, all == 1 ? "" : "s", all == 1 ? "s" : "",
                     all == 1 ? "leave it out" : "give ",
                     all == 1 ? "" : base_format_divisors(all, sizes, sizeof sizes),
                     all == 1 ? ""
                              : ", of these one that divides the ranks on a host or is a multiple "
                                "of them");
}

static bool fits_hosts(int32_t ranks, int32_t ranks_per_host) {
    return ranks % ranks_per_host == 0 || ranks_per_host % ranks == 0;
}

sifr_status plan_mesh_check_near(const plan_mesh *mesh, int32_t ranks_per_host, sifr_error *error) {
    char sizes[128] = "";
    int32_t near = mesh->near, all = plan_mesh_ranks(mesh, PLAN_STATE);
    int32_t each = mesh->ranks[PLAN_AXIS_TENSOR];
    bool one = ranks_per_host <= 0 || ranks_per_host >= plan_mesh_ranks(mesh, PLAN_WORLD);
    if (near == 0 || one || fits_hosts(near * each, ranks_per_host)) return SIFR_OK;
    for (int32_t size = 2; size < all; size++) {
        size_t used = strlen(sizes);
        if (all % size != 0 || !fits_hosts(size * each, ranks_per_host)) continue;
        snprintf(sizes + used, sizeof sizes - used, "%s%d", used ? " or " : "give ", (int)size);
    }
    return base_fail(error, SIFR_USAGE,
                     "zero_hpz_partition_size %d: a host has %d ranks, and a second copy of the "
                     "parameters lies inside a host or on whole hosts; %s",
                     (int)near, (int)ranks_per_host, sizes[0] ? sizes : "leave it out");
}

static sifr_status check_exact(const sifr_mesh *mesh, int32_t tensors, sifr_error *error) {
    int32_t exact = mesh->tp_exact;
    if (exact != 0 && exact != 2 && exact != 4 && exact != 8)
        return base_fail(error, SIFR_USAGE, "sifr.tp_exact is %d; give 2, 4 or 8, or leave it out",
                         (int)exact);
    if (exact == 0 || exact % tensors == 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "sifr.tp_exact is %d, which %d tensor ranks do not divide; %s", (int)exact,
                     (int)tensors,
                     tensors == 4 || tensors == 8 ? "give their number for it, or fewer of them"
                                                  : "give 2, 4 or 8 tensor ranks");
}

/* Of several axes each may divide the ranks alone. */
static sifr_status check_product(const sifr_settings *settings, int64_t stages, int64_t ranks,
                                 sifr_error *error) {
    int64_t tensors = base_max_i64(settings->mesh.tensor_size, 1),
            contexts = base_max_i64(settings->mesh.context_size, 1), all;
    int axes = (stages > 1) + (tensors > 1) + (contexts > 1);
    bool fits = base_mul_i64(stages, tensors, &all) && base_mul_i64(all, contexts, &all) &&
                ranks % all == 0;
    if (axes < 2 || fits) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "pipeline, tensor_parallel, context_parallel: %lld stage%s x %lld tensor%s x "
                     "%lld context%s do not divide %lld ranks; start a multiple of their product, "
                     "or give smaller sizes",
                     (long long)stages, stages == 1 ? "" : "s", (long long)tensors,
                     tensors == 1 ? "" : "s", (long long)contexts, contexts == 1 ? "" : "s",
                     (long long)ranks);
}

sifr_status plan_mesh_of(const sifr_settings *settings, int32_t ranks, int32_t rank, plan_mesh *out,
                         sifr_error *error) {
    char counts[128];
    int32_t stages = (int32_t)base_max_i64(settings->pipeline.stages, 1);
    *out = plan_mesh_flat(ranks, rank);
    BASE_TRY(check_product(settings, stages, ranks, error));
    if (ranks % stages)
        return base_fail(error, SIFR_USAGE,
                         "pipeline: %d stages, which do not divide %d rank%s; %s%s", (int)stages,
                         (int)ranks, ranks == 1 ? "" : "s", ranks == 1 ? "start more" : "give ",
                         base_format_divisors(ranks, counts, sizeof counts));
    int32_t of_stage = ranks / stages,
            tensors = (int32_t)base_max_i64(settings->mesh.tensor_size, 1);
    int32_t size = settings->mesh.shard_size;
    if (of_stage % tensors)
        return base_fail(
            error, SIFR_USAGE,
            "tensor_parallel: %d ranks that divide matrices do not divide %d rank%s%s; "
            "%s%s",
            (int)tensors, (int)of_stage, of_stage == 1 ? "" : "s", stages > 1 ? " of a stage" : "",
            of_stage == 1 ? "start more" : "give ",
            base_format_divisors(of_stage, counts, sizeof counts));
    BASE_TRY(check_exact(&settings->mesh, tensors, error));
    int32_t of_tensor = of_stage / tensors,
            contexts = (int32_t)base_max_i64(settings->mesh.context_size, 1);
    if (of_tensor % contexts)
        return base_fail(
            error, SIFR_USAGE,
            "context_parallel: %d ranks that divide sequences do not divide %d rank%s; %s%s",
            (int)contexts, (int)of_tensor, of_tensor == 1 ? "" : "s",
            of_tensor == 1 ? "start more" : "give ",
            of_tensor == 1 ? "" : base_format_divisors(of_tensor, counts, sizeof counts));
    BASE_TRY(plan_mesh_make(of_tensor / contexts, 0, size, out, error));
    out->ranks[PLAN_AXIS_STAGE] = stages;
    out->ranks[PLAN_AXIS_CONTEXT] = contexts;
    out->ranks[PLAN_AXIS_TENSOR] = tensors;
    find_places(out, rank);
    return set_near(&settings->zero, out, error);
}

plan_mesh plan_mesh_at(const plan_mesh *mesh, int32_t rank) {
    base_assert(rank >= 0 && rank < plan_mesh_ranks(mesh, PLAN_WORLD));
    plan_mesh out = *mesh;
    find_places(&out, rank);
    return out;
}

static bool has(plan_span span, int axis) {
    return (unsigned)span & 1u << axis;
}

/* No axis: runs of `near` neighbours of PLAN_STATE. */
static int32_t near_of(const plan_mesh *mesh) {
    base_assert(mesh->near >= 0);
    return mesh->near > 0 ? mesh->near : 1;
}

/* The same of PLAN_TENSORS. */
static int32_t alike_of(const plan_mesh *mesh) {
    base_assert(mesh->alike >= 0 &&
                mesh->ranks[PLAN_AXIS_TENSOR] % base_max_i64(mesh->alike, 1) == 0);
    return mesh->alike > 0 ? mesh->alike : 1;
}

int32_t plan_mesh_ranks(const plan_mesh *mesh, plan_span span) {
    int32_t ranks = 1;
    if (span == PLAN_HOSTS) return near_of(mesh);
    if (span == PLAN_ALIKE) return alike_of(mesh);
    for (int a = 0; a < PLAN_AXES; a++)
        if (has(span, a)) ranks *= mesh->ranks[a];
    return ranks;
}

int32_t plan_mesh_place(const plan_mesh *mesh, plan_span span) {
    int32_t place = 0;
    if (span == PLAN_HOSTS) return plan_mesh_place(mesh, PLAN_STATE) % near_of(mesh);
    if (span == PLAN_ALIKE) return mesh->place[PLAN_AXIS_TENSOR] % alike_of(mesh);
    for (int a = 0; a < PLAN_AXES; a++)
        if (has(span, a)) place = place * mesh->ranks[a] + mesh->place[a];
    return place;
}

int32_t plan_mesh_group(const plan_mesh *mesh, plan_span span) {
    if (span == PLAN_HOSTS) {
        int32_t runs = plan_mesh_ranks(mesh, PLAN_STATE) / near_of(mesh);
        return plan_mesh_group(mesh, PLAN_STATE) * runs +
               plan_mesh_place(mesh, PLAN_STATE) / near_of(mesh);
    }
    if (span == PLAN_ALIKE)
        return plan_mesh_group(mesh, PLAN_TENSORS) *
                   (mesh->ranks[PLAN_AXIS_TENSOR] / alike_of(mesh)) +
               mesh->place[PLAN_AXIS_TENSOR] / alike_of(mesh);
    return plan_mesh_place(mesh, (plan_span)(PLAN_WORLD & ~(unsigned)span));
}

/* Ranks of the world from the first of a group to the last. */
static int32_t extent_of(const plan_mesh *mesh, plan_span span) {
    int32_t stride = 1, extent = 1;
    /* The axes of PLAN_STATE are beside each other, so its places are as far apart as the last's.
     */
    if (span == PLAN_HOSTS) return mesh->ranks[PLAN_AXIS_TENSOR] * (near_of(mesh) - 1) + 1;
    if (span == PLAN_ALIKE) return alike_of(mesh);
    for (int a = PLAN_AXES - 1; a >= 0; a--) {
        if (has(span, a)) extent += stride * (mesh->ranks[a] - 1);
        stride *= mesh->ranks[a];
    }
    return extent;
}

bool plan_mesh_crosses(const plan_mesh *mesh, plan_span span, int32_t ranks_per_host) {
    int32_t world = plan_mesh_ranks(mesh, PLAN_WORLD), here = ranks_per_host, whole = 1;
    if (here <= 0 || world <= here || plan_mesh_ranks(mesh, span) == 1) return false;
    if (extent_of(mesh, span) > here) return true;
    if (span == PLAN_HOSTS) return here % (near_of(mesh) * mesh->ranks[PLAN_AXIS_TENSOR]) != 0;
    if (span == PLAN_ALIKE) return here % alike_of(mesh) != 0;
    /* Blocks of so many ranks hold whole groups. */
    for (int a = PLAN_AXES - 1; a >= 0 && whole < extent_of(mesh, span); a--)
        whole *= mesh->ranks[a];
    return here % whole != 0;
}

sifr_status plan_mesh_check_hosts(const plan_mesh *mesh, int32_t ranks_per_host,
                                  sifr_error *error) {
    char sizes[128];
    if (!plan_mesh_crosses(mesh, PLAN_TENSORS, ranks_per_host)) return SIFR_OK;
    base_format_divisors(ranks_per_host & -ranks_per_host, sizes, sizeof sizes);
    return base_fail(
        error, SIFR_USAGE,
        "tensor_parallel: %d tensor ranks would be on several hosts of %d rank%s each, "
        "which is not supported yet; %s%s, or start a multiple of %d ranks on each host",
        (int)mesh->ranks[PLAN_AXIS_TENSOR], (int)ranks_per_host, ranks_per_host == 1 ? "" : "s",
        sizes[0] ? "give " : "leave them out", sizes, (int)mesh->ranks[PLAN_AXIS_TENSOR]);
}

int32_t plan_mesh_neighbours(const plan_mesh *mesh, plan_span span, int32_t ranks_per_host) {
    int32_t world = plan_mesh_ranks(mesh, PLAN_WORLD), rank = plan_mesh_place(mesh, PLAN_WORLD);
    int32_t here = ranks_per_host > 0 && ranks_per_host < world ? ranks_per_host : world;
    int32_t first = rank / here * here, count = 0;
    for (int32_t r = first; r < first + here && r < world; r++) {
        plan_mesh there = plan_mesh_at(mesh, r);
        count += plan_mesh_group(&there, span) == plan_mesh_group(mesh, span);
    }
    base_assert(count >= 1); /* itself */
    return count;
}

const char *plan_span_name(plan_span span) {
    return span == PLAN_STATE      ? "shards"
           : span == PLAN_STAGES   ? "stages"
           : span == PLAN_REPLICAS ? "replicas"
           : span == PLAN_DATA     ? "data"
           : span == PLAN_BATCH    ? "batch"
           : span == PLAN_CONTEXTS ? "contexts"
           : span == PLAN_TENSORS  ? "tensors"
           : span == PLAN_HOSTS    ? "host"
           : span == PLAN_ALIKE    ? "alike"
                                   : "world";
}

static const char *place_of(const plan_mesh *mesh, plan_span span, const plan_places *places) {
    bool switches = places->per_switch > 0, nodes = places->per_node > 0;
    if (plan_mesh_crosses(mesh, span, places->per_switch)) return "between switches";
    if (plan_mesh_crosses(mesh, span, places->per_host))
        return switches ? "between hosts of a switch" : "between hosts";
    if (plan_mesh_crosses(mesh, span, places->per_node)) return "between NUMA nodes";
    return nodes ? "inside a NUMA node" : "inside a host";
}

const char *plan_mesh_places_text(const plan_mesh *mesh, const plan_places *places,
                                  char out[PLAN_MESH_LENGTH]) {
    bool several = plan_mesh_crosses(mesh, PLAN_WORLD, places->per_host);
    int used = snprintf(out, PLAN_MESH_LENGTH, "%s", several ? "" : "all on one host");
    if (!several && !plan_mesh_crosses(mesh, PLAN_WORLD, places->per_node)) return out;
    for (int a = 0; a < PLAN_AXES; a++) {
        if (mesh->ranks[a] == 1) continue;
        used +=
            snprintf(out + used, (size_t)(PLAN_MESH_LENGTH - used), "%s%ss %s", used ? ", " : "",
                     plan_axis_name((plan_axis)a), place_of(mesh, (plan_span)(1 << a), places));
    }
    return out;
}

const char *plan_mesh_text(const plan_mesh *mesh, char out[PLAN_MESH_LENGTH]) {
    size_t used = 0;
    out[0] = '\0';
    for (int a = 0; a < PLAN_AXES; a++) {
        if (mesh->ranks[a] == 1) continue;
        used += (size_t)snprintf(out + used, PLAN_MESH_LENGTH - used, "%s%d %ss", used ? " x " : "",
                                 (int)mesh->ranks[a], plan_axis_name((plan_axis)a));
    }
    return out;
}

const char *plan_mesh_place_text(const plan_mesh *mesh, char out[PLAN_MESH_LENGTH]) {
    size_t used = 0;
    out[0] = '\0';
    for (int a = 0; a < PLAN_AXES; a++) {
        if (mesh->ranks[a] == 1) continue;
        used += (size_t)snprintf(out + used, PLAN_MESH_LENGTH - used, "%s%s %d", used ? ", " : "",
                                 plan_axis_name((plan_axis)a), (int)mesh->place[a]);
    }
    return out;
}
