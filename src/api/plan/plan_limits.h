/* The memory that a rank may take: from --device-memory, --host-memory, a machine's description, or
 * the memory available on this machine.
 */
#ifndef API_PLAN_LIMITS_H
#define API_PLAN_LIMITS_H

#include "plan/price/price.h"

typedef struct api_plan_limits {
    int64_t device_bytes, host_bytes; /* as given; 0: not */
    int64_t taken;           /* memory that this process has taken before there is a block */
    int64_t baseline;        /* the same of a rank, with MPI's where there are several */
    int64_t ranks_here;      /* that share a host */
    int64_t room_bytes;      /* limit for a rank's block; INT64_MAX: not known */
    int64_t host_room_bytes; /* limit in host memory, for separate devices; 0: not known */
    bool is_shared;          /* with other programs: what this machine has available */
    char text[192];          /* source of the limit, for messages */
} api_plan_limits;

/* Works out the limits from the first three arguments and the number of ranks. If neither limit is
 * given, room_bytes of `machine` counts; it is set if this machine's free memory must not count.
 * With separate devices the two limits are for two memories, as are the capacities of `machine`;
 * the program itself is in host memory. */
void api_plan_limits_find(api_plan_limits *limits, int64_t world_size, plan_machine *machine);

#endif
