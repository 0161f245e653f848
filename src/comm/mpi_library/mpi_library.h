/* MPI as a table of functions, opened at run time. Open MPI and MPICH have other handles, constants
 * and structs, so each has a table of its own, of one source (mpi_shim.inc). In it all messages are
 * bytes, and of MPI's constants only those that a caller gives are left. A call returns MPI's code:
 * 0, or one that error_text explains.
 */
#ifndef MPI_LIBRARY_H
#define MPI_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/errors.h"
#include "base/file.h"
#include "comm/mpi_library/mpi_functions.h"
#include "comm/mpi_library/mpi_kind.h"

typedef struct mpi_library mpi_library;

typedef struct mpi_comm {
    uintptr_t handle; /* 0: none */
} mpi_comm;

typedef struct mpi_request {
    uintptr_t handle; /* 0: none, as after its end */
} mpi_request;

typedef struct mpi_status {
    int source, tag;
    int bytes; /* after a test */
} mpi_status;

enum {
    MPI_ANYWHERE = -1,         /* any source */
    MPI_MOST_REQUESTS = 64,    /* in one test */
    MPI_ERROR_TEXT = 1024,     /* bytes that error_text needs */
    MPI_VERSION_TEXT = 8 << 10 /* likewise version_text */
};

/* Each takes the table that it is of. A status may be NULL; it is set where a message is there. */
#define MPI_CALLS(C)                                                                               \
    C(initialized, (const mpi_library *mpi, int *there))                                           \
    C(finalized, (const mpi_library *mpi, int *over))                                              \
    C(serves_threads, (const mpi_library *mpi, bool *serves)) /* that take turns */                \
    C(init, (const mpi_library *mpi, bool *serves_threads))                                        \
    C(finalize, (const mpi_library *mpi))                                                          \
    C(version_text, (const mpi_library *mpi, char *text, int *length)) /* before init, too */      \
    C(error_text, (const mpi_library *mpi, int code, char *text, int *length))                     \
    C(duplicate, (const mpi_library *mpi, mpi_comm from, mpi_comm *out))                           \
    C(split, (const mpi_library *mpi, mpi_comm from, int color, int key, mpi_comm *out))           \
    C(split_hosts, (const mpi_library *mpi, mpi_comm from, mpi_comm *out))                         \
    C(release, (const mpi_library *mpi, mpi_comm *comm))                                           \
    C(rank, (const mpi_library *mpi, mpi_comm comm, int *rank))                                    \
    C(size, (const mpi_library *mpi, mpi_comm comm, int *size))                                    \
    C(return_errors, (const mpi_library *mpi, mpi_comm comm)) /* instead of ending the process */  \
    C(broadcast, (const mpi_library *mpi, void *data, int bytes, int root, mpi_comm comm))         \
    C(gather, (const mpi_library *mpi, const void *mine, int bytes, void *all, mpi_comm comm))     \
    C(gather_parts, (const mpi_library *mpi, const void *mine, int bytes, void *all,               \
                     const int *counts, const int *places, mpi_comm comm))                         \
    C(send, (const mpi_library *mpi, const void *data, int bytes, int to, int tag, mpi_comm comm,  \
             mpi_request *out))                                                                    \
    C(receive, (const mpi_library *mpi, void *data, int bytes, int from, int tag, mpi_comm comm,   \
                mpi_request *out)) /* from anywhere: of any tag */                                 \
    C(test, (const mpi_library *mpi, mpi_request *request, int *done, mpi_status *status))         \
    C(test_all, (const mpi_library *mpi, int count, mpi_request *requests, int *done))             \
    C(probe, (const mpi_library *mpi, int from, int tag, mpi_comm comm, int *there,                \
              mpi_status *status)) /* likewise */

typedef struct mpi_calls {
#define MPI_MEMBER(name, arguments) int(*name) arguments;
    MPI_CALLS(MPI_MEMBER)
#undef MPI_MEMBER
} mpi_calls;

enum {
#define MPI_PLACE(name, ...) AT_##name,
    MPI_FUNCTIONS(MPI_PLACE) MPI_FUNCTION_COUNT
};

enum { MPI_HANDLES(MPI_PLACE) MPI_HANDLE_COUNT };
#undef MPI_PLACE

struct mpi_library {
    mpi_calls calls;
    mpi_comm world;
    comm_mpi_kind kind;          /* COMM_OPEN_MPI or COMM_MPICH */
    char path[BASE_PATH_LENGTH]; /* of its file */
    char version[160];           /* the first line of the library's own words */
    /* For the calls: the library's own functions, and handles that are there from the start. */
    void (*functions[MPI_FUNCTION_COUNT])(void);
    uintptr_t handles[MPI_HANDLE_COUNT];
};

/* What an ABI gives to the table. */
typedef struct mpi_abi {
    comm_mpi_kind kind;
    mpi_calls calls;
    struct {
        const char *symbol; /* of the object whose address is the handle; NULL: `value` is */
        uintptr_t value;
    } handles[MPI_HANDLE_COUNT];
} mpi_abi;

extern const mpi_abi mpi_abi_open_mpi, mpi_abi_mpich;

/* Opens the MPI of this process (mpi_choice.h); starts nothing. SIFR_FAILED or SIFR_USAGE says what
 * was looked for, and what to do. It stays loaded until the process ends, so that opening it again
 * costs little. Not thread-safe beside changes of the environment. */
sifr_status mpi_library_open(mpi_library *out, sifr_error *error) SIFR_MUST_CHECK;

#endif
