/* No rank leaves an all-gather before all have entered it. So a rank's time after it and rank 0's
 * time before it bound the difference of the two clocks from one side, and the reverse from the
 * other. The narrowest bounds of a few rounds are kept; their middle is the estimate.
 */
#include "train/profile/clocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/lines.h"

enum { ROUNDS = 16 };

/* Of one rank. */
typedef struct clock_report {
    uint64_t id;
    double before[ROUNDS], after[ROUNDS];
} clock_report;

static double seconds(void *user) {
    (void)user;
    return base_seconds();
}

/* Processes with the same boot id share CLOCK_MONOTONIC, unless they are in different time
 * namespaces. */
train_clock train_clock_here(void) {
    char text[512] = {0};
    size_t used = 0;
    if (base_read_line("/proc/sys/kernel/random/boot_id", text, 64)) used = strlen(text);
    ssize_t more = readlink("/proc/self/ns/time", text + used, sizeof text - used);
    if (more > 0) used += (size_t)more;
    return (train_clock){.now = seconds, .id = base_hash(text, used)};
}

static double ahead_of(const clock_report *first, const clock_report *other) {
    double low = -INFINITY, high = INFINITY;
    if (first->id == other->id) return 0;
    for (int i = 0; i < ROUNDS; i++) {
        low = fmax(low, other->before[i] - first->after[i]);
        high = fmin(high, other->after[i] - first->before[i]);
    }
    return (low + high) / 2;
}

sifr_status train_clocks_compare(comm_group *group, const train_clock *clock, double *ahead,
                                 sifr_error *error) {
    size_t ranks = (size_t)comm_size(group);
    clock_report mine = {.id = clock->id}, *all = NULL;
    sifr_status status = base_alloc(ranks, sizeof *all, &all, error);
    status = comm_agree_status(group, status, error);
    for (int i = 0; i < ROUNDS && status == SIFR_OK; i++) {
        uint64_t ping = 0;
        mine.before[i] = clock->now(clock->user);
        status = comm_all_gather_control(group, &ping, sizeof ping, all, error);
        mine.after[i] = clock->now(clock->user);
    }
    if (status == SIFR_OK) status = comm_all_gather_control(group, &mine, sizeof mine, all, error);
    for (size_t r = 0; r < ranks && status == SIFR_OK; r++) ahead[r] = ahead_of(&all[0], &all[r]);
    free(all);
    return status;
}
