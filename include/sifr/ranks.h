/* The processes of a run. One process is one rank; those that an MPI launcher (mpirun, srun)
 * started are its ranks together.
 *
 *     sifr_ranks_open(context, NULL, &ranks, &error);
 *     ... the same calls on every rank ...
 *     sifr_ranks_close(ranks);
 *
 * Functions that are "of all ranks" are called by each of them, in the same order, and return the
 * same status on all but for SIFR_LOST_RANK, after which a process should close the ranks and end
 * with a code other than 0. The first such call compares the ranks' programs: SIFR_USAGE where they
 * differ. Ranks belong to one thread at a time. The context must outlive them.
 */
#ifndef SIFR_RANKS_H
#define SIFR_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sifr/context.h"
#include "sifr/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sifr_ranks sifr_ranks;

typedef struct sifr_ranks_options {
    size_t size; /* sizeof(sifr_ranks_options) */
    bool alone;  /* this process is the only rank, whoever started it */
    /* Seconds that the start may take, and collectives until a run's config says it; 0: no limit.
     * Needs `late`. */
    double start_limit;
    /* Called on a thread of its own while ranks are missing at the start: with who is missing, as
     * far as that can be seen, or "" where another rank of the host says it. `last`: the limit has
     * passed. Nothing else can end that wait, so the callback then has to end the process. */
    void (*late)(void *user, bool last, const char *line);
    void *user;
} sifr_ranks_options;

/* How many ranks an MPI launcher started, this process among them; 1: none did. Starts nothing. */
SIFR_API int sifr_ranks_started(void);

/* Of all ranks. NULL for `options`: zeros. Opens MPI where a launcher started several ranks: the
 * one that the program has loaded, or that launcher's (docs/launching.md, "Which MPI"). Starts it
 * if the program has not; then sifr_ranks_close ends MPI, and this is possible once in a process.
 * SIFR_FAILED if MPI is needed and cannot be used, SIFR_USAGE if SIFR_MPI in the environment is
 * wrong. */
SIFR_API sifr_status sifr_ranks_open(sifr_context *context, const sifr_ranks_options *options,
                                     sifr_ranks **out, sifr_error *error) SIFR_MUST_CHECK;

/* Waits until all ranks close, unless a rank was lost. NULL is harmless. */
SIFR_API void sifr_ranks_close(sifr_ranks *ranks);

SIFR_API int sifr_ranks_rank(const sifr_ranks *ranks); /* from 0; numbered host by host */
SIFR_API int sifr_ranks_size(const sifr_ranks *ranks);
SIFR_API int sifr_ranks_host_rank(const sifr_ranks *ranks); /* among those of this host */
SIFR_API int sifr_ranks_host_size(const sifr_ranks *ranks);

/* Of all ranks: each gives its own status, and the message that `error` holds; all get the status
 * and message of the lowest rank that failed, SIFR_OK if none did. For what a rank can fail in by
 * itself: without it the others would wait for one that has left. `error` should not be NULL. */
SIFR_API sifr_status sifr_ranks_agree(sifr_ranks *ranks, sifr_status status,
                                      sifr_error *error) SIFR_MUST_CHECK;

/* Of all ranks: the `bytes` at `mine` of every rank, in their order, at `all` (size x bytes) of
 * every rank. For small data. */
SIFR_API sifr_status sifr_ranks_gather(sifr_ranks *ranks, const void *mine, int64_t bytes,
                                       void *all, sifr_error *error) SIFR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
