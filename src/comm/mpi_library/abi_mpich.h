/* What programs see of MPICH's libmpi.so.12 since release 3.1, and of libraries that keep to its
 * ABI: handles are numbers. tests/comm/test_mpi_abi.sh compares this with its <mpi.h>. */
#ifndef ABI_MPICH_H
#define ABI_MPICH_H

typedef int abi_comm, abi_request, abi_datatype, abi_info, abi_errhandler;

typedef struct abi_status {
    int bytes_low, bytes_high_and_cancelled;
    int source, tag, error;
} abi_status;

enum {
    ABI_COMM_TYPE_SHARED = 1,
    ABI_THREAD_SERIALIZED = 2,
    ABI_ANY_SOURCE = -2,
    ABI_ANY_TAG = -1,
    ABI_MAX_ERROR_STRING = 512,
    ABI_MAX_LIBRARY_VERSION_STRING = 8192
};

#define ABI_STATUS_IGNORE ((abi_status *)1)

#define ABI_HANDLE_MPI_COMM_WORLD                                                                  \
    { .value = 0x44000000 }
#define ABI_HANDLE_MPI_BYTE                                                                        \
    { .value = 0x4c00010d }
#define ABI_HANDLE_MPI_REQUEST_NULL                                                                \
    { .value = 0x2c000000 }
#define ABI_HANDLE_MPI_INFO_NULL                                                                   \
    { .value = 0x1c000000 }
#define ABI_HANDLE_MPI_ERRORS_RETURN                                                               \
    { .value = 0x54000001 }

#endif
