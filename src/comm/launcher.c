#include "comm/launcher.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

/* A whole number >= 1 of the environment; 0 where there is none. */
static int number(const char *name) {
    const char *text = getenv(name);
    char *end;
    if (!text || !*text) return 0;
    errno = 0;
    long value = strtol(text, &end, 10);
    return *end || errno || value < 1 || value > INT_MAX ? 0 : (int)value;
}

bool comm_under_launcher(int *ranks) {
    /* Open MPI; MPICH, Intel MPI and Slurm's pmi2; MVAPICH. */
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"};
    int found = 0;
    for (size_t i = 0; !found && i < sizeof names / sizeof names[0]; i++) found = number(names[i]);
    /* srun; SLURM_NTASKS alone is also there in a batch script, which is one process. */
    if (!found && getenv("SLURM_STEP_ID") && getenv("SLURM_PROCID"))
        found = number("SLURM_STEP_NUM_TASKS");
    if (ranks) *ranks = found ? found : 1;
    return found > 0;
}

int comm_launcher_local_ranks(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                        "MV2_COMM_WORLD_LOCAL_SIZE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int found = number(names[i]);
        if (found) return found;
    }
    return 0;
}

const char *comm_foreign_launcher(int *ranks) {
    if (comm_under_launcher(NULL) || !getenv("RANK") || !getenv("LOCAL_RANK")) return NULL;
    *ranks = number("WORLD_SIZE");
    if (!*ranks) return NULL;
    return getenv("TORCHELASTIC_RUN_ID") ? "torchrun" : "a launcher that sets RANK and WORLD_SIZE";
}
