/* How much memory a rank may take: of --device-memory, --host-memory, a machine's description, or
 * what this machine has left. */
#ifndef CLI_PLAN_LIMITS_H
#define CLI_PLAN_LIMITS_H

#include "plan/price/price.h"

typedef struct cli_plan_limits {
    int64_t device_bytes, host_bytes; /* as given; 0: not */
    int64_t baseline;                 /* what the program itself takes on each rank */
    int64_t ranks_here;               /* that share a host */
    int64_t room_bytes;               /* what a rank's block may take; INT64_MAX: not known */
    int64_t host_room_bytes; /* and that of the host, where devices have their own; 0: not known */
    char text[192];          /* where that comes from, for people */
} cli_plan_limits;

/* From the first three, and how many ranks there are; a room_bytes of `machine` counts where
 * neither limit is given, and is set where it must not be what there is here. Where devices have
 * memory of their own the two limits are of two memories, and so are the rooms of `machine`; the
 * program itself is in the host's. */
void cli_plan_limits_find(cli_plan_limits *limits, int64_t world_size, plan_machine *machine);

#endif
