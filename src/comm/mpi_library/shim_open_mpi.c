/* Open MPI's table. */
#include "comm/mpi_library/abi_open_mpi.h"

#include "comm/mpi_library/mpi_shim.inc"

const mpi_abi mpi_abi_open_mpi = {
    .kind = COMM_OPEN_MPI, .calls = ABI_CALLS, .handles = ABI_HANDLES};
