/* Compares what src/comm/mpi_library/ has written down of an MPI's ABI with its own <mpi.h>, and
 * what it opens in a program that is linked with that MPI with what the program uses itself:
 * test_mpi_abi.sh compiles this with ABI_HEADER, and runs it. */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include ABI_HEADER
#include "comm/mpi_library/mpi_library.h"

_Static_assert(sizeof(abi_comm) == sizeof(MPI_Comm), "MPI_Comm");
_Static_assert(sizeof(abi_request) == sizeof(MPI_Request), "MPI_Request");
_Static_assert(sizeof(abi_datatype) == sizeof(MPI_Datatype), "MPI_Datatype");
_Static_assert(sizeof(abi_info) == sizeof(MPI_Info), "MPI_Info");
_Static_assert(sizeof(abi_errhandler) == sizeof(MPI_Errhandler), "MPI_Errhandler");
_Static_assert(sizeof(abi_status) == sizeof(MPI_Status), "MPI_Status");
_Static_assert(_Alignof(abi_status) == _Alignof(MPI_Status), "MPI_Status");
_Static_assert(offsetof(abi_status, source) == offsetof(MPI_Status, MPI_SOURCE), "MPI_SOURCE");
_Static_assert(offsetof(abi_status, tag) == offsetof(MPI_Status, MPI_TAG), "MPI_TAG");
_Static_assert(offsetof(abi_status, error) == offsetof(MPI_Status, MPI_ERROR), "MPI_ERROR");
_Static_assert((int)ABI_COMM_TYPE_SHARED == (int)MPI_COMM_TYPE_SHARED, "MPI_COMM_TYPE_SHARED");
_Static_assert((int)ABI_THREAD_SERIALIZED == (int)MPI_THREAD_SERIALIZED, "MPI_THREAD_SERIALIZED");
_Static_assert(ABI_ANY_SOURCE == MPI_ANY_SOURCE, "MPI_ANY_SOURCE");
_Static_assert(ABI_ANY_TAG == MPI_ANY_TAG, "MPI_ANY_TAG");
_Static_assert((int)ABI_MAX_ERROR_STRING == (int)MPI_MAX_ERROR_STRING, "MPI_MAX_ERROR_STRING");
_Static_assert((int)ABI_MAX_LIBRARY_VERSION_STRING == (int)MPI_MAX_LIBRARY_VERSION_STRING,
               "MPI_MAX_LIBRARY_VERSION_STRING");
_Static_assert(MPI_SUCCESS == 0, "MPI_SUCCESS");

/* The same prototypes in the types of <mpi.h>: a parameter that differs does not compile. */
#define abi_comm MPI_Comm
#define abi_request MPI_Request
#define abi_datatype MPI_Datatype
#define abi_info MPI_Info
#define abi_errhandler MPI_Errhandler
#define abi_status MPI_Status
#define CHECK(name, arguments) extern int name arguments;
MPI_FUNCTIONS(CHECK)
#undef CHECK

#define TEXT(...) #__VA_ARGS__
#define EXPANDED(...) TEXT(__VA_ARGS__)

typedef struct handle {
    const char *symbol;
    unsigned long value;
} handle;

/* A handle is an object's address, which <mpi.h> names, or a number. */
static int differs(const char *name, handle written, unsigned long value, const char *text) {
    int same = written.symbol ? strstr(text, written.symbol) != NULL : written.value == value;
    if (!same) printf("%s is %s\n", name, text);
    return !same;
}

static int opens_another(void) {
    mpi_library mpi;
    sifr_error error;
    int bad = 0, there;
    MPI_Initialized(&there); /* so that this is linked with it, whatever the linker leaves out */
    if (mpi_library_open(&mpi, &error) != SIFR_OK) {
        puts(error.message);
        return 1;
    }
#define SAME(name) bad += mpi.handles[AT_##name] != (uintptr_t)name;
    MPI_HANDLES(SAME)
#undef SAME
    if (bad) printf("%s: other objects than the program's\n", mpi.path);
    return bad;
}

int main(void) {
    int bad = 0;
    bad += (void *)ABI_STATUS_IGNORE != (void *)MPI_STATUS_IGNORE;
    bad += (void *)ABI_STATUS_IGNORE != (void *)MPI_STATUSES_IGNORE;
    if (bad) puts("MPI_STATUS_IGNORE");
#define COMPARE(name)                                                                              \
    bad += differs(#name, (handle)ABI_HANDLE_##name, (unsigned long)name, EXPANDED(name));
    MPI_HANDLES(COMPARE)
    return bad || opens_another();
}
