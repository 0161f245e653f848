#include "engine/meeting.h"

#include "base/assert.h"

/* A rank that refuses counts so far below zero that no counts of others make up for it. Of the
 * hashes the first rank takes away what the others add up to where they are the same. */
sifr_status engine_meet(comm_group *group, engine_meeting *meeting, sifr_error *error) {
    base_assert(meeting->count >= 0);
    int64_t size = comm_size(group);
    uint64_t times = comm_rank(group) == 0 ? (uint64_t)(1 - size) : 1;
    int64_t sums[2] = {meeting->refuses ? -(INT64_MAX / size) : meeting->count,
                       (int64_t)(meeting->given * times)};
    BASE_TRY(comm_sum(group, sums, 2, error));
    meeting->refuses = sums[0] < 0;
    meeting->count = meeting->refuses ? 0 : sums[0];
    meeting->differs = !meeting->refuses && sums[1] != 0;
    return SIFR_OK;
}
