/* The status board: what each rank of a host is doing, for reports of trouble. */
#ifndef COMM_BOARD_H
#define COMM_BOARD_H

#include <stdatomic.h>
#include <stddef.h>

#include "comm/comm.h"

enum { COMM_NOUN = 16 };

typedef struct comm_state {
    uint32_t number; /* number of its current or last collective; 0: none yet */
    int32_t operation;
    bool busy;  /* in that collective; otherwise it has been over since `since` */
    int32_t of; /* the label's number */
    int64_t step;
    double since; /* time by base_seconds, which a host's processes share */
    char noun[COMM_NOUN];
    char group[COMM_NAME]; /* "": the group of all ranks */
} comm_state;

/* Written by one thread, read by any process. */
typedef struct comm_entry {
    _Atomic uint32_t version; /* odd while it is being written */
    comm_state state;
} comm_entry;

void comm_board_write(comm_entry *entry, const comm_state *state);
comm_state comm_board_read(const comm_entry *entry);

/* The state at the start of a collective with `label` in the group of that name. */
comm_state comm_board_begin(const char *group, uint32_t number, comm_operation operation,
                            const comm_label *label);

/* "reduce_scatter of unit 3, step 7", "all_gather (group shard) of unit 3, step 7" */
void comm_board_name(const comm_state *state, char *out, size_t capacity);

enum {
    COMM_SILENCE = 2
}; /* seconds without a sign of life after which a waiting rank counts as not running */

/* A rank of this host, or one about which nothing is known. */
typedef struct comm_sighting {
    int32_t rank; /* its number in the group of all ranks */
    bool known, dead;
    double silent; /* seconds since its last sign of life while waiting; 0: running */
    comm_state state;
} comm_sighting;

/* Describes where each of the `size` ranks of a group is, seen from a rank that waits in `mine`:
 * first the missing ranks, then those that wait too, then those about which nothing is known. The
 * numbers of their states are those of this group's collectives, whatever else a state says. Always
 * ends with NUL. */
void comm_board_describe(const comm_sighting *ranks, int32_t size, const comm_state *mine,
                         double now, char *out, size_t capacity);

#endif
