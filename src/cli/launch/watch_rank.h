/* Who was killed, where the launcher does not say. */
#ifndef CLI_WATCH_RANK_H
#define CLI_WATCH_RANK_H

/* MPICH's launcher ends all ranks at once when one is killed, so that none can say which it was.
 * Where it started this process as a rank, this goes on in a child, and the process itself only
 * waits ("sifr-watch"): it names the rank where a signal ends that, with exit code 4, and has the
 * rank's exit code otherwise. Where a launcher that sifr started is killed, both end. Elsewhere,
 * and where no child can be made, nothing happens. Call it before any thread and before MPI is
 * started. */
void cli_watch_rank(const char *name);

#endif
