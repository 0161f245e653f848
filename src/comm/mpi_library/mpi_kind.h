/* The MPIs that sifr knows, by the ABI of their library. */
#ifndef MPI_KIND_H
#define MPI_KIND_H

#include <stdint.h>

/* MPICH's ABI is also that of MVAPICH, Intel MPI and Cray MPI. COMM_OTHER_MPI: which one it will be
 * is not known yet. */
typedef enum comm_mpi_kind { COMM_NO_MPI, COMM_OPEN_MPI, COMM_MPICH, COMM_OTHER_MPI } comm_mpi_kind;

const char *comm_mpi_name(comm_mpi_kind kind); /* "Open MPI", "MPICH", "MPI"; "no MPI" */

/* Debian's package of library and launcher: "openmpi-bin"; of COMM_OTHER_MPI a choice of two. */
const char *comm_mpi_package(comm_mpi_kind kind);

/* The names of its library, the first one first; ends with NULL. */
const char *const *comm_mpi_files(comm_mpi_kind kind);

/* Memory in bytes that MPI takes of each rank, beside what the program takes without it. */
int64_t comm_mpi_bytes(comm_mpi_kind kind);

#endif
