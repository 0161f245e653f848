/* Built by test_install.sh, and run as two ranks: a run that a callback of the second one stops,
 * and the rest of it on the same ranks; a failure of one rank that both hear of. MPI's start
 * changes no handler of a signal but that of SIGUSR1, which MPICH's launcher sends. */
#define _XOPEN_SOURCE 700

#include <sifr/sifr.h>
#include <signal.h>
#include <stdio.h>

static int on_step(void *user, const sifr_train_step *step) {
    return *(const int *)user == 1 && step->step == 2 ? 9 : 0;
}

/* Of all signals. Once something was set, glibc has another flag there, which says nothing. */
static unsigned long handlers(void) {
    const int flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER | SA_RESETHAND;
    unsigned long sum = 0;
    struct sigaction action;
    for (int i = 1; i <= SIGSYS; i++)
        if (i != SIGUSR1 && sigaction(i, NULL, &action) == 0)
            sum = 31 * sum + (unsigned long)action.sa_handler +
                  (unsigned long)(action.sa_flags & flags);
    return sum;
}

int main(void) {
    unsigned long before = handlers();
    sifr_error error = {0};
    sifr_context *context;
    sifr_config *config;
    sifr_ranks *ranks;
    sifr_train_outcome outcome = {.size = sizeof outcome};
    if (sifr_context_create(NULL, &context, &error) || sifr_config_create(&config, &error) ||
        sifr_ranks_open(context, NULL, &ranks, &error) ||
        sifr_config_load(config, "ds.json", &error) ||
        sifr_config_set(config, "output", "two_runs", &error))
        return 1;
    int rank = sifr_ranks_rank(ranks), all[2];
    if (handlers() != before) return printf("rank %d: handlers of signals changed\n", rank), 1;
    sifr_train_options options = {.size = sizeof options, .user = &rank, .step = on_step};
    if (sifr_train(context, config, ranks, &options, &outcome, &error)) goto failed;
    printf("rank %d: stopped by %d after step %d\n", rank, outcome.stopped, (int)outcome.steps);
    if (sifr_config_set(config, "resume", NULL, &error)) goto failed;
    if (sifr_train(context, config, ranks, NULL, &outcome, &error)) goto failed;
    if (sifr_ranks_gather(ranks, &rank, sizeof rank, all, &error)) goto failed;
    printf("rank %d: %d steps, ranks %d %d\n", rank, (int)outcome.steps, all[0], all[1]);
    if (rank == 1) error.status = sifr_config_set(config, "nothing", NULL, &error);
    if (sifr_ranks_agree(ranks, error.status, &error) != SIFR_USAGE) goto failed;
    printf("rank %d: %s\n", rank, error.message);
    sifr_ranks_close(ranks);
    sifr_config_free(config);
    sifr_context_free(context);
    return 0;
failed:
    fprintf(stderr, "rank %d: %s\n", rank, error.message);
    return 1;
}
