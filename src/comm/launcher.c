#include "comm/launcher.h"

#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

static int number(const char *name) {
    return comm_environment_number(name, 1);
}

/* The number of tasks that srun started. SLURM_NTASKS alone is also set in a batch script, which is
 * one process. */
static int slurm_tasks(void) {
    if (!getenv("SLURM_STEP_ID") || !getenv("SLURM_PROCID")) return 0;
    return number("SLURM_STEP_NUM_TASKS");
}

/* Without PMIx, or PMI where it was built for it, Open MPI sees each task of srun as a run of its
 * own and ends the process. Other MPIs may use a Slurm library, which leaves no trace in the
 * environment. */
static bool slurm_is_foreign(void) {
    return comm_mpi_chosen() == COMM_OPEN_MPI && !getenv("PMIX_RANK") &&
           (!getenv("PMI_RANK") || comm_mpi_lacks_pmi());
}

/* With the number that it holds; NULL: none. */
static const char *launcher_variable(int *ranks) {
    /* Open MPI; MPICH, Intel MPI and Slurm's pmi2; MVAPICH. */
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        *ranks = number(names[i]);
        bool pmi = strcmp(names[i], "PMI_SIZE") == 0;
        if (*ranks && !(pmi && comm_started_by_srun() && slurm_is_foreign())) return names[i];
    }
    *ranks = slurm_tasks();
    if (*ranks && slurm_is_foreign()) *ranks = 0;
    return *ranks ? "SLURM_STEP_NUM_TASKS" : NULL;
}

bool comm_under_launcher(int *ranks) {
    int found;
    bool launched = launcher_variable(&found) != NULL;
    if (ranks) *ranks = launched ? found : 1;
    return launched;
}

const char *comm_launcher_variable(void) {
    int ranks;
    return launcher_variable(&ranks);
}

const char *comm_srun(void) {
    return comm_mpi_chosen() == COMM_MPICH ? "srun --mpi=pmi2" : "srun --mpi=pmix";
}

int comm_launcher_rank(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK",
                                        "SLURM_PROCID"};
    int found = -1, ranks;
    for (size_t i = 0; found < 0 && i < sizeof names / sizeof names[0]; i++)
        found = comm_environment_number(names[i], 0);
    if (comm_under_launcher(NULL)) return found;
    if (!comm_foreign_launcher(&ranks)) return -1;
    return comm_environment_number(slurm_tasks() > 1 ? "SLURM_PROCID" : "RANK", 0);
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

/* Both MPIs put some 4 MiB a rank there. */
bool comm_shared_memory_is_small(int ranks) {
    struct statvfs fs;
    if (statvfs("/dev/shm", &fs) != 0) return true;
    return (uint64_t)fs.f_bavail * fs.f_frsize < ((uint64_t)ranks + 1) * (16 << 20);
}

const char *comm_foreign_launcher(int *ranks) {
    if (comm_under_launcher(NULL)) return NULL;
    *ranks = slurm_tasks();
    if (*ranks > 1) return "srun without PMIx";
    if (!getenv("RANK") || !getenv("LOCAL_RANK")) return NULL;
    *ranks = number("WORLD_SIZE");
    if (!*ranks) return NULL;
    return getenv("TORCHELASTIC_RUN_ID") ? "torchrun" : "a launcher that sets RANK and WORLD_SIZE";
}
