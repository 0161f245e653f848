/* The launchers of MPI that are in PATH. */
#ifndef COMM_LAUNCHER_PROGRAMS_H
#define COMM_LAUNCHER_PROGRAMS_H

#include <stdbool.h>

#include "base/file.h"
#include "comm/mpi_library/mpi_kind.h"

typedef struct comm_launcher_program {
    comm_mpi_kind kind;
    bool orte; /* Open MPI's launcher up to version 4, which has options of its own */
    char path[BASE_PATH_LENGTH];
} comm_launcher_program;

/* A launcher's kind, from what its path resolves to and from the library beside it;
 * COMM_OTHER_MPI: they do not tell. */
comm_mpi_kind comm_launcher_kind(const char *path);

/* The first launcher of PATH that may belong to `kind` (COMM_OTHER_MPI: any). Where there is none,
 * *other is one of another kind, or has no path. */
bool comm_launcher_search(comm_mpi_kind kind, comm_launcher_program *out,
                          comm_launcher_program *other);

/* The first launcher of PATH that tells its kind. */
bool comm_launcher_first(comm_launcher_program *out);

#endif
