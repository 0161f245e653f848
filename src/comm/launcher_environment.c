#include "comm/launcher_environment.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

int comm_environment_number(const char *name, int least) {
    const char *text = getenv(name);
    char *end;
    if (!text || !*text) return least - 1;
    errno = 0;
    long value = strtol(text, &end, 10);
    return *end || errno || value < least || value > INT_MAX ? least - 1 : (int)value;
}

bool comm_started_by_srun(void) {
    const char *job = getenv("PMIX_NAMESPACE");
    if (!getenv("SLURM_STEP_ID") || !getenv("SLURM_PROCID")) return false;
    return job ? strncmp(job, "slurm", 5) == 0 : !getenv("MPI_LOCALNRANKS");
}
