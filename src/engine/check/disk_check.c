/* Checks that the ranks' files fit on disk, before any memory is taken. */
#include <stdlib.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/disk.h"
#include "base/heap.h"
#include "base/text.h"
#include "comm/cores.h"
#include "engine/engine_private.h"
#include "engine/store/swap_directory.h"

/* The bytes that a rank will put on which disk of which host. */
typedef struct disk_need {
    uint64_t host, disk;
    int64_t bytes;
} disk_need;

static sifr_status find_need(comm_group *group, const char *parent, int64_t bytes, disk_need *mine,
                             disk_need **all, int32_t *cleaned, sifr_error *error) {
    base_disk disk;
    BASE_TRY(base_alloc((size_t)comm_size(group), sizeof **all, all, error));
    BASE_TRY(engine_swap_directory_check(parent, error));
    *cleaned = engine_swap_directory_clean(parent);
    BASE_TRY(base_disk_find(parent, &disk, error));
    *mine = (disk_need){comm_host_id(), disk.id, bytes};
    return SIFR_OK;
}

static sifr_status refuse(const char *parent, int64_t own, int64_t together, int32_t sharers,
                          uint64_t capacity, sifr_error *error) {
    char each[32], all[32], have[32];
    base_format_bytes((uint64_t)own, each);
    base_format_bytes((uint64_t)together, all);
    base_format_bytes(capacity, have);
    if (sharers > 1)
        return base_fail(error, SIFR_NO_MEMORY,
                         "disk: %d ranks of this host put %s each, %s together, in %s, and %s are "
                         "free there; free some, or give a directory on a larger disk",
                         (int)sharers, each, all, parent, have);
    return base_fail(error, SIFR_NO_MEMORY,
                     "disk: the run puts %s in %s, and %s are free there; free some, or give a "
                     "directory on a larger disk",
                     each, parent, have);
}

/* Measured after all ranks have cleaned up and before any rank makes its file. */
static sifr_status compare(const char *parent, const disk_need *mine, const disk_need *all,
                           int32_t ranks, sifr_error *error) {
    base_disk disk;
    int64_t together = 0;
    int32_t sharers = 0;
    for (int32_t r = 0; r < ranks; r++) {
        if (all[r].host != mine->host || all[r].disk != mine->disk || all[r].bytes == 0) continue;
        if (!base_add_i64(together, all[r].bytes, &together)) together = INT64_MAX;
        sharers++;
    }
    BASE_TRY(base_disk_find(parent, &disk, error));
    if (mine->bytes == 0 || (uint64_t)together <= disk.free_bytes) return SIFR_OK;
    return refuse(parent, mine->bytes, together, sharers, disk.free_bytes, error);
}

sifr_status engine_check_disk(comm_group *group, const char *parent, int64_t bytes,
                              int32_t *cleaned, sifr_error *error) {
    base_assert(bytes >= 0);
    disk_need mine = {0}, *all = NULL;
    int64_t whole = base_ceil_to(bytes, ENGINE_IO_ALIGNMENT);
    sifr_status status = find_need(group, parent, whole, &mine, &all, cleaned, error);
    status = comm_agree_status(group, status, error);
    if (status == SIFR_OK) status = comm_all_gather_control(group, &mine, sizeof mine, all, error);
    if (status == SIFR_OK)
        status =
            comm_agree_status(group, compare(parent, &mine, all, comm_size(group), error), error);
    free(all);
    return status;
}
