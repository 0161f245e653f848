/* A team of threads that runs tiles of work. */
#ifndef CPU_THREADS_H
#define CPU_THREADS_H

#include <stdint.h>

#include "base/errors.h"

typedef struct cpu_team cpu_team;

typedef void (*cpu_tile)(void *argument, int64_t tile, int thread);

/* threads >= 1, including the caller's. */
sifr_status cpu_team_create(int threads, cpu_team **out, sifr_error *error) SIFR_MUST_CHECK;
void cpu_team_free(cpu_team *team); /* NULL is allowed; no work may be running */

int cpu_team_threads(const cpu_team *team);

/* Calls run(argument, tile, thread) for each tile in [0, tiles) and returns when all are done. The
 * assignment of tiles to threads is unspecified, so a result may only depend on the tile. While a
 * tile runs, subnormal floats count as zero (base/float_mode.h). */
void cpu_parallel(cpu_team *team, int64_t tiles, cpu_tile run, void *argument);

#endif
