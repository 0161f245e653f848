/* Loads a file as an MPI library. */
#ifndef MPI_LOAD_H
#define MPI_LOAD_H

#include "comm/mpi_library/mpi_library.h"

/* `file` is a path, or a name that the system's loader looks for. SIFR_FAILED: "FILE: why not". */
sifr_status mpi_load(const char *file, mpi_library *out, sifr_error *error) SIFR_MUST_CHECK;

/* Whether this process has loaded an MPI library already: since it is linked with one, or because
 * of a call above. `path` gets its file. */
bool mpi_find_loaded(comm_mpi_kind *kind, char path[BASE_PATH_LENGTH]);

#endif
