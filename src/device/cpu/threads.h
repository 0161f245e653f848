/* A team of threads that run tiles of work. */
#ifndef CPU_THREADS_H
#define CPU_THREADS_H

#include <stdint.h>

#include "base/errors.h"

typedef struct cpu_team cpu_team;

typedef void (*cpu_tile)(void *argument, int64_t tile, int thread);

/* threads >= 1, the caller's own included. */
sifr_status cpu_team_create(int threads, cpu_team **out, sifr_error *error) SIFR_MUST_CHECK;
void cpu_team_free(cpu_team *team); /* NULL is harmless; no work may be under way */

int cpu_team_threads(const cpu_team *team);

/* Calls run(argument, tile, thread) for each tile in [0, tiles) and returns when all are done.
 * Which thread gets which tile is left open, so a result may only depend on the tile. While a tile
 * runs, floats below the normal ones count as zero (base/float_mode.h). */
void cpu_parallel(cpu_team *team, int64_t tiles, cpu_tile run, void *argument);

#endif
