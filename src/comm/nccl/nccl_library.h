/* NCCL as a table of functions, found at run time. The declarations are our own, for NCCL 2.18 and
 * later. Its settings are given in the form of 2.14, which later versions accept. */
#ifndef NCCL_LIBRARY_H
#define NCCL_LIBRARY_H

#include <stddef.h>

#include "base/errors.h"
#include "base/file.h"

typedef struct ncclComm *nccl_communicator;
typedef void *nccl_stream; /* cudaStream_t, from device_enter */

typedef int nccl_result; /* ncclResult_t */
enum { NCCL_OK = 0, NCCL_IN_PROGRESS = 7 };

enum { NCCL_BYTES = 1 }; /* ncclDataType_t: ncclUint8 */

typedef struct nccl_name { /* ncclUniqueId */
    char bytes[128];
} nccl_name;

typedef struct nccl_settings { /* ncclConfig_t */
    size_t size;
    unsigned magic, version;
    int blocking;
} nccl_settings;
#define NCCL_SETTINGS                                                                              \
    { .size = sizeof(nccl_settings), .magic = 0xcafebeef, .version = 21400, .blocking = 0 }

#define NCCL_FUNCTIONS(F)                                                                          \
    F(ncclGetUniqueId, (nccl_name * name))                                                         \
    F(ncclCommInitRankConfig,                                                                      \
      (nccl_communicator * out, int ranks, nccl_name name, int rank, nccl_settings *settings))     \
    F(ncclCommGetAsyncError, (nccl_communicator communicator, nccl_result * state))                \
    F(ncclCommFinalize, (nccl_communicator communicator))                                          \
    F(ncclCommDestroy, (nccl_communicator communicator))                                           \
    F(ncclCommAbort, (nccl_communicator communicator))                                             \
    F(ncclGroupStart, (void))                                                                      \
    F(ncclGroupEnd, (void))                                                                        \
    F(ncclSend, (const void *from, size_t count, int type, int peer,                               \
                 nccl_communicator communicator, nccl_stream stream))                              \
    F(ncclRecv, (void *to, size_t count, int type, int peer, nccl_communicator communicator,       \
                 nccl_stream stream))                                                              \
    F(ncclAllGather, (const void *from, void *to, size_t count, int type,                          \
                      nccl_communicator communicator, nccl_stream stream))

typedef struct nccl_library {
#define NCCL_MEMBER(name, arguments) nccl_result(*name) arguments;
    NCCL_FUNCTIONS(NCCL_MEMBER)
#undef NCCL_MEMBER
    const char *(*ncclGetErrorString)(nccl_result result);
    int major, minor, patch;
    char path[BASE_PATH_LENGTH]; /* of the library; "" if the table was given */
} nccl_library;

/* Loads NCCL where device_library_open finds it, and fills the table. SIFR_FAILED says what is
 * missing, or that it is older than 2.18. It stays loaded until the process ends. */
sifr_status nccl_library_open(nccl_library *out, sifr_error *error) SIFR_MUST_CHECK;

/* SIFR_FAILED with "NCCL: WHAT: NCCL's words" for what is neither success nor in progress. */
sifr_status nccl_library_check(const nccl_library *library, nccl_result result, const char *what,
                               sifr_error *error) SIFR_MUST_CHECK;

#endif
