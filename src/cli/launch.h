/* Starting a command on several ranks of this machine. */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

/* Runs `sifr argv[0] argv[1] …` on `ranks` ranks under mpirun (or mpiexec) and waits for it; the
 * result is the program's exit code: the ranks' own, or 4 where one was lost. Says how many threads
 * each rank gets. SIGINT and SIGTERM reach the ranks as SIGUSR1 and SIGUSR2, so that they are not
 * taken for what a launcher sends to end them: see cli_stop_signals.
 *
 *     if (ranks > 1 && !comm_under_launcher(NULL)) return cli_launch_ranks(argc, argv, ranks);
 */
int cli_launch_ranks(int argc, char **argv, int ranks);

/* The signals that ask this process to save and stop, and what each of them means: SIGINT and
 * SIGTERM themselves, or, in a rank that cli_launch_ranks started, SIGUSR1 and SIGUSR2; there a
 * SIGTERM comes from the launcher, whose other ranks are lost, and must end the process. */
typedef struct cli_stop_signal {
    int number, meaning;
} cli_stop_signal;

const cli_stop_signal *cli_stop_signals(void); /* two of them */

/* Threads for each of `local_ranks` ranks that share this machine's processors, at least 1. */
int cli_threads_per_rank(int local_ranks);

#endif
