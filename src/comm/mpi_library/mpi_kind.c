#include "comm/mpi_library/mpi_kind.h"

#include <stddef.h>

#include "base/assert.h"

static void check(comm_mpi_kind kind) {
    base_assert((int)kind >= 0 && kind <= COMM_OTHER_MPI);
}

const char *comm_mpi_name(comm_mpi_kind kind) {
    static const char *const names[] = {[COMM_NO_MPI] = "no MPI",
                                        [COMM_OPEN_MPI] = "Open MPI",
                                        [COMM_MPICH] = "MPICH",
                                        [COMM_OTHER_MPI] = "MPI"};
    check(kind);
    return names[kind];
}

const char *comm_mpi_package(comm_mpi_kind kind) {
    check(kind);
    return kind == COMM_OPEN_MPI ? "openmpi-bin"
           : kind == COMM_MPICH  ? "mpich"
                                 : "openmpi-bin or mpich";
}

const char *const *comm_mpi_files(comm_mpi_kind kind) {
    static const char *const none[] = {NULL}, *const open_mpi[] = {"libmpi.so.40", NULL};
    static const char *const mpich[] = {"libmpi.so.12", "libmpich.so.12", NULL}; /* then Debian's */
    check(kind);
    return kind == COMM_OPEN_MPI ? open_mpi : kind == COMM_MPICH ? mpich : none;
}

int64_t comm_mpi_bytes(comm_mpi_kind kind) {
    /* Private memory before the first step and a rank's part of MPI's own shared memory, rounded
     * up: measured on 2 to 8 ranks of a host, 3.0 + 0.7 MB with Open MPI 4.1.4, 7.2 MB with MPICH
     * 4.0.2 (tests/cli/test_memory_ranks.sh). */
    static const int64_t mib[] = {
        [COMM_NO_MPI] = 0, [COMM_OPEN_MPI] = 4, [COMM_MPICH] = 8, [COMM_OTHER_MPI] = 8};
    check(kind);
    return mib[kind] << 20;
}
