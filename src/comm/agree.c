/* Agreement of ranks: that they have the same inputs, and whether a task succeeded on all of them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/heap.h"
#include "comm/transport.h"

/* The most common hash; with a tie, that of the lowest rank. */
static uint64_t most_common(const uint64_t *hashes, int32_t size) {
    base_assert(size >= 1);
    int32_t best = 0, most = 0;
    for (int32_t i = 0; i < size; i++) {
        int32_t same = 0;
        for (int32_t j = 0; j < size; j++) same += hashes[j] == hashes[i];
        if (same > most) most = same, best = i;
    }
    return hashes[best];
}

/* Names the ranks that differ from `hash`: "rank 1" or "ranks 1, 4 and 3 more". */
static void name_others(const comm_group *group, const uint64_t *hashes, uint64_t hash, char *text,
                        size_t capacity) {
    int32_t others = 0, named = 0, size = group->size;
    for (int32_t i = 0; i < size; i++) others += hashes[i] != hash;
    size_t used = (size_t)snprintf(text, capacity, others == 1 ? "rank" : "ranks");
    for (int32_t i = 0; i < size && named < 16; i++) {
        if (hashes[i] == hash) continue;
        used += (size_t)snprintf(text + used, capacity - used, "%s %d", named ? "," : "",
                                 (int)comm_world_rank(group, i));
        named++;
    }
    if (others > named)
        snprintf(text + used, capacity - used, " and %d more", (int)(others - named));
}

sifr_status comm_agree(comm_group *group, const char *label, uint64_t hash, sifr_error *error) {
    uint64_t *hashes;
    char names[256];
    BASE_TRY(base_alloc((size_t)group->size, sizeof *hashes, &hashes, error));
    sifr_status status = comm_all_gather_control(group, &hash, sizeof hash, hashes, error);
    if (status == SIFR_OK) {
        uint64_t common = most_common(hashes, group->size);
        bool same = true;
        for (int32_t i = 0; i < group->size; i++) same = same && hashes[i] == common;
        if (!same) {
            name_others(group, hashes, common, names, sizeof names);
            status =
                base_fail(error, SIFR_USAGE,
                          "%s: differs on %s from the other ranks (of %d); give all ranks the same",
                          label, names, (int)group->size);
        }
    }
    free(hashes);
    return status;
}

/* The number of failed ranks in first … end - 1. */
static sifr_status count_failures(comm_group *group, bool failed, int32_t first, int32_t end,
                                  int64_t *count, sifr_error *error) {
    base_assert(first >= 0 && first <= end && end <= group->size);
    *count = failed && group->rank >= first && group->rank < end;
    return comm_sum(group, count, 1, error);
}

/* Finds the lowest failed rank by halving: sums need no memory, which may be what a rank ran out
 * of. */
static sifr_status lowest_failure(comm_group *group, bool failed, int32_t *out, sifr_error *error) {
    int32_t first = 0, end = group->size;
    while (end - first > 1) {
        int32_t middle = first + (end - first) / 2;
        int64_t count;
        BASE_TRY(count_failures(group, failed, first, middle, &count, error));
        if (count)
            end = middle;
        else
            first = middle;
    }
    *out = first;
    return SIFR_OK;
}

sifr_status comm_agree_status(comm_group *group, sifr_status status, sifr_error *error) {
    sifr_error said = {0};
    int32_t lowest;
    int64_t failures;
    if (group->size == 1 || status == SIFR_LOST_RANK) return status;
    BASE_TRY(count_failures(group, status != SIFR_OK, 0, group->size, &failures, error));
    if (failures == 0) return SIFR_OK;
    BASE_TRY(lowest_failure(group, status != SIFR_OK, &lowest, error));
    if (group->rank == lowest) {
        const char *reason = error && error->message[0] ? error->message : "failed";
        base_set_error(&said, status, "%s", reason);
    }
    BASE_TRY(comm_broadcast(group, lowest, &said, sizeof said, error));
    int32_t name = comm_world_rank(group, lowest);
    if (name == 0) return base_fail(error, said.status, "%s", said.message);
    return base_fail(error, said.status, "rank %d: %s", (int)name, said.message);
}
