/* MPICH's table. */
#include "comm/mpi_library/abi_mpich.h"

#include "comm/mpi_library/mpi_shim.inc"

const mpi_abi mpi_abi_mpich = {.kind = COMM_MPICH, .calls = ABI_CALLS, .handles = ABI_HANDLES};
