#include "comm/comm.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "comm/transport.h"

const char *comm_operation_name(comm_operation operation) {
    static const char *const names[COMM_OPERATIONS] = {"all_gather", "reduce_scatter", "control"};
    return names[operation];
}

void comm_close(comm_group *group) {
    if (group) group->transport->close(group);
}

int32_t comm_rank(const comm_group *group) {
    return group->rank;
}

int32_t comm_size(const comm_group *group) {
    return group->size;
}

int32_t comm_local_size(const comm_group *group) {
    return group->local_size;
}

int64_t comm_buffer_bytes(const comm_group *group) {
    return group->buffer_bytes;
}

void comm_set_timeout(comm_group *group, double seconds) {
    group->timeout = seconds;
}

void comm_slow_down(comm_group *group, double seconds_a_call, double seconds_a_byte) {
    group->call_seconds = seconds_a_call;
    group->byte_seconds = seconds_a_byte;
}

const comm_ledger *comm_get_ledger(const comm_group *group) {
    return &group->ledger;
}

sifr_status comm_start_all_gather(comm_group *group, const void *slice, int64_t bytes, void *whole,
                                  comm_handle *out, sifr_error *error) {
    return group->transport->all_gather(group, slice, bytes, whole, out, error);
}

sifr_status comm_start_reduce_scatter(comm_group *group, const float *whole, int64_t elements,
                                      float *slice, comm_handle *out, sifr_error *error) {
    return group->transport->reduce_scatter(group, whole, elements, slice, out, error);
}

sifr_status comm_wait(comm_handle handle, sifr_error *error) {
    return handle.group->transport->wait(handle.group, handle.id, error);
}

sifr_status comm_sum(comm_group *group, int64_t *values, int32_t count, sifr_error *error) {
    return group->transport->sum(group, values, count, error);
}

sifr_status comm_all_gather_control(comm_group *group, const void *mine, int64_t bytes, void *all,
                                    sifr_error *error) {
    return group->transport->all_gather_control(group, mine, bytes, all, error);
}

sifr_status comm_broadcast(comm_group *group, int32_t root, void *data, int64_t bytes,
                           sifr_error *error) {
    if (root < 0 || root >= group->size)
        return base_fail(error, SIFR_FAILED, "broadcast: there is no rank %d among %d", (int)root,
                         (int)group->size);
    return group->transport->broadcast(group, root, data, bytes, error);
}

/* The hash that most ranks have; of several, that of the lowest rank. */
static uint64_t most_common(const uint64_t *hashes, int32_t size) {
    int32_t best = 0, most = 0;
    for (int32_t i = 0; i < size; i++) {
        int32_t same = 0;
        for (int32_t j = 0; j < size; j++) same += hashes[j] == hashes[i];
        if (same > most) most = same, best = i;
    }
    return hashes[best];
}

/* "rank 1" or "ranks 1, 4 and 3 more" of those that differ from `hash`. */
static void name_others(const uint64_t *hashes, int32_t size, uint64_t hash, char *text,
                        size_t room) {
    int32_t others = 0, named = 0;
    for (int32_t i = 0; i < size; i++) others += hashes[i] != hash;
    size_t used = (size_t)snprintf(text, room, others == 1 ? "rank" : "ranks");
    for (int32_t i = 0; i < size && named < 16; i++) {
        if (hashes[i] == hash) continue;
        used += (size_t)snprintf(text + used, room - used, "%s %d", named ? "," : "", (int)i);
        named++;
    }
    if (others > named) snprintf(text + used, room - used, " and %d more", (int)(others - named));
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
            name_others(hashes, group->size, common, names, sizeof names);
            status = base_fail(error, SIFR_USAGE,
                               "%s: not the same on %s as on the other ranks (of %d): all ranks "
                               "must be given the same",
                               label, names, (int)group->size);
        }
    }
    free(hashes);
    return status;
}
