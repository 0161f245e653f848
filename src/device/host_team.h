/* A team of threads that runs tiles of work. */
#ifndef DEVICE_HOST_TEAM_H
#define DEVICE_HOST_TEAM_H

#include <stdint.h>

#include "base/errors.h"

typedef struct host_team host_team;

typedef void (*host_tile)(void *argument, int64_t tile, int thread);

/* threads >= 1, including the caller's. */
sifr_status host_team_create(int threads, host_team **out, sifr_error *error) SIFR_MUST_CHECK;
void host_team_free(host_team *team); /* NULL is allowed; no work may be running */

int host_team_threads(const host_team *team);

/* Calls run(argument, tile, thread) for each tile in [0, tiles) and returns when all are done. The
 * assignment of tiles to threads is unspecified, so a result may only depend on the tile. While a
 * tile runs, subnormal floats count as zero (base/float_mode.h). */
void host_parallel(host_team *team, int64_t tiles, host_tile run, void *argument);

#endif
