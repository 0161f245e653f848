/* Replaces the MPI transport in builds without MPI. */
#include <stddef.h>

#include "comm/comm.h"
#include "comm/launcher.h"

sifr_status comm_open_mpi(comm_group **out, sifr_error *error) {
    return comm_open_mpi_with(&(comm_options){0}, out, error);
}

sifr_status comm_open_mpi_with(const comm_options *options, comm_group **out, sifr_error *error) {
    (void)options;
    *out = NULL;
    return base_fail(
        error, SIFR_FAILED,
        "more than one rank needs MPI, but this sifr was built without it; install libopenmpi-dev "
        "and openmpi-bin (or libmpich-dev and mpich) and build sifr again");
}

bool comm_has_mpi(void) {
    return false;
}

comm_mpi_kind comm_mpi_built(void) {
    return COMM_NO_MPI;
}

void comm_mpi_version(char *out, size_t size) {
    if (size) out[0] = '\0';
}

bool comm_mpi_lacks_pmi(void) {
    return false;
}
