/* Where an MPI's library lies beside its launcher: PREFIX/bin/mpirun, PREFIX/lib/libmpi.so.40. */
#ifndef MPI_PLACES_H
#define MPI_PLACES_H

#include <stdbool.h>

#include "base/file.h"
#include "comm/mpi_library/mpi_kind.h"

/* False: there is none of this kind. */
bool comm_mpi_beside(comm_mpi_kind kind, const char *program, char out[BASE_PATH_LENGTH]);

/* Beside the nearest of the processes that started this one. */
bool comm_mpi_beside_parents(comm_mpi_kind kind, char out[BASE_PATH_LENGTH]);

#endif
