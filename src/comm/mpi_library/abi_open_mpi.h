/* What programs see of Open MPI's libmpi.so.40, releases 3 to 5: handles are addresses of objects,
 * and the library exports those that are there from the start. tests/comm/test_mpi_abi.sh compares
 * this with its <mpi.h>. */
#ifndef ABI_OPEN_MPI_H
#define ABI_OPEN_MPI_H

#include <stddef.h>

typedef void *abi_comm, *abi_request, *abi_datatype, *abi_info, *abi_errhandler;

typedef struct abi_status {
    int source, tag, error;
    int cancelled;
    size_t bytes;
} abi_status;

enum {
    ABI_COMM_TYPE_SHARED = 0,
    ABI_THREAD_SERIALIZED = 2,
    ABI_ANY_SOURCE = -1,
    ABI_ANY_TAG = -1,
    ABI_MAX_ERROR_STRING = 256,
    ABI_MAX_LIBRARY_VERSION_STRING = 256
};

#define ABI_STATUS_IGNORE ((abi_status *)0)

#define ABI_HANDLE_MPI_COMM_WORLD                                                                  \
    { .symbol = "ompi_mpi_comm_world" }
#define ABI_HANDLE_MPI_BYTE                                                                        \
    { .symbol = "ompi_mpi_byte" }
#define ABI_HANDLE_MPI_REQUEST_NULL                                                                \
    { .symbol = "ompi_request_null" }
#define ABI_HANDLE_MPI_INFO_NULL                                                                   \
    { .symbol = "ompi_mpi_info_null" }
#define ABI_HANDLE_MPI_ERRORS_RETURN                                                               \
    { .symbol = "ompi_mpi_errors_return" }

#endif
