/* The functions of NVIDIA's driver, called through a table: libcuda.so.1 fills it when a GPU is
 * asked for, and a test fills it with functions of its own. So one program runs with and without a
 * driver, and nothing of CUDA is needed to compile it.
 *
 * Types and constants are those of <cuda.h> under names of our own.
 * tests/device/test_cuda_header.sh compares both where <cuda.h> is at hand.
 */
#ifndef CUDA_DRIVER_H
#define CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

typedef unsigned cuda_result;            /* CUresult */
typedef int cuda_device_handle;          /* CUdevice */
typedef unsigned long long cuda_address; /* CUdeviceptr */
/* The tags are <cuda.h>'s, so that a compiler that sees both headers compares whole functions. */
typedef struct CUctx_st *cuda_context;
typedef struct CUmod_st *cuda_module;
typedef struct CUfunc_st *cuda_function;
typedef struct CUstream_st *cuda_stream;
typedef struct CUevent_st *cuda_event;
typedef struct CUgraph_st *cuda_graph;
typedef struct CUgraphExec_st *cuda_graph_program;

typedef struct cuda_uuid {
    unsigned char bytes[16];
} cuda_uuid;
typedef struct cuda_ipc_memory {
    char bytes[64];
} cuda_ipc_memory; /* CUipcMemHandle */
typedef struct cuda_ipc_event {
    char bytes[64];
} cuda_ipc_event; /* CUipcEventHandle */

/* Results that sifr acts on: <cuda.h>'s CUDA_ERROR_... */
enum {
    CUDA_OK = 0,
    CUDA_INVALID_VALUE = 1,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NOT_INITIALIZED = 3,
    CUDA_STUB_LIBRARY = 34,
    CUDA_NO_DEVICE = 100,
    CUDA_INVALID_DEVICE = 101,
    CUDA_INVALID_IMAGE = 200,
    CUDA_INVALID_CONTEXT = 201,
    CUDA_NO_BINARY_FOR_GPU = 209,
    CUDA_ECC_UNCORRECTABLE = 214,
    CUDA_NVLINK_UNCORRECTABLE = 220,
    CUDA_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_CONTAINED = 226,
    CUDA_INVALID_HANDLE = 400,
    CUDA_NOT_FOUND = 500,
    CUDA_NOT_READY = 600,
    CUDA_ILLEGAL_ADDRESS = 700,
    CUDA_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_LAUNCH_TIMEOUT = 702,
    CUDA_CONTEXT_IS_DESTROYED = 709,
    CUDA_ASSERT = 710,
    CUDA_HARDWARE_STACK_ERROR = 714,
    CUDA_LAUNCH_FAILED = 719,
    CUDA_LAUNCH_TOO_LARGE = 720, /* COOPERATIVE_ */
    CUDA_TENSOR_MEMORY_LEAK = 721,
    CUDA_NOT_SUPPORTED = 801,
    CUDA_SYSTEM_NOT_READY = 802,
    CUDA_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_MPS_CLIENT_TERMINATED = 810,
    CUDA_CAPTURE_UNSUPPORTED = 900,
    CUDA_CAPTURE_UNMATCHED = 903,
    CUDA_EXTERNAL_DEVICE = 911,
    CUDA_UNKNOWN = 999
};

/* CU_DEVICE_ATTRIBUTE_... */
enum {
    CUDA_DEVICE_MULTIPROCESSORS = 16,
    CUDA_DEVICE_COPY_ENGINES = 40,
    CUDA_DEVICE_CAPABILITY_MAJOR = 75,
    CUDA_DEVICE_CAPABILITY_MINOR = 76,
    CUDA_DEVICE_SHARED_BYTES = 97 /* of a block that asked for them */
};

/* Flags and attributes of single functions, with the name of each function's argument. */
enum {
    CUDA_FUNCTION_LOCAL_BYTES = 3, /* cuFuncGetAttribute */
    CUDA_FUNCTION_REGISTERS = 4,
    CUDA_FUNCTION_SHARED_BYTES = 8, /* cuFuncSetAttribute: dynamic shared memory above 48 KiB */
    CUDA_HOST_PORTABLE = 1,         /* cuMemHostAlloc and cuMemHostRegister */
    CUDA_HOST_DEVICE_MAP = 2,
    CUDA_STREAM_NON_BLOCKING = 1, /* cuStreamCreateWithPriority */
    CUDA_EVENT_NO_TIMING = 2,     /* cuEventCreate */
    CUDA_EVENT_INTERPROCESS = 4,
    CUDA_WAIT_AT_LEAST = 0,      /* cuStreamWaitValue32, cyclic: (int32_t)(*address - value) >= 0 */
    CUDA_WAIT_EQUAL = 1,         /* cuStreamWaitValue32 */
    CUDA_IPC_PEER_ACCESS = 1,    /* cuIpcOpenMemHandle */
    CUDA_CAPTURE_THIS_THREAD = 1 /* cuStreamBeginCapture */
};

/* F(name, symbol, arguments). `name` is the one in NVIDIA's documentation. <cuda.h> maps some names
 * to a later version of the function; `symbol` is what libcuda calls that version. All are there
 * since CUDA 12.0, so cuEventElapsedTime is the version of that time. */
#define CUDA_DRIVER_FUNCTIONS(F)                                                                   \
    F(cuInit, cuInit, (unsigned flags))                                                            \
    F(cuDriverGetVersion, cuDriverGetVersion, (int *version))                                      \
    F(cuGetErrorName, cuGetErrorName, (cuda_result result, const char **name))                     \
    F(cuGetErrorString, cuGetErrorString, (cuda_result result, const char **text))                 \
    F(cuDeviceGetCount, cuDeviceGetCount, (int *count))                                            \
    F(cuDeviceGet, cuDeviceGet, (cuda_device_handle * device, int ordinal))                        \
    F(cuDeviceGetName, cuDeviceGetName, (char *name, int length, cuda_device_handle device))       \
    F(cuDeviceGetUuid, cuDeviceGetUuid_v2, (cuda_uuid * uuid, cuda_device_handle device))          \
    F(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, (char *id, int length, cuda_device_handle device)) \
    F(cuDeviceTotalMem, cuDeviceTotalMem_v2, (size_t * bytes, cuda_device_handle device))          \
    F(cuDeviceGetAttribute, cuDeviceGetAttribute,                                                  \
      (int *value, unsigned attribute, cuda_device_handle device))                                 \
    F(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain,                                          \
      (cuda_context * context, cuda_device_handle device))                                         \
    F(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (cuda_device_handle device))        \
    F(cuCtxSetCurrent, cuCtxSetCurrent, (cuda_context context))                                    \
    F(cuMemGetInfo, cuMemGetInfo_v2, (size_t * free, size_t * total))                              \
    F(cuMemAlloc, cuMemAlloc_v2, (cuda_address * address, size_t bytes))                           \
    F(cuMemFree, cuMemFree_v2, (cuda_address address))                                             \
    F(cuMemHostAlloc, cuMemHostAlloc, (void **host, size_t bytes, unsigned flags))                 \
    F(cuMemFreeHost, cuMemFreeHost, (void *host))                                                  \
    F(cuMemHostRegister, cuMemHostRegister_v2, (void *host, size_t bytes, unsigned flags))         \
    F(cuMemHostUnregister, cuMemHostUnregister, (void *host))                                      \
    F(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2,                                     \
      (cuda_address * address, void *host, unsigned flags))                                        \
    F(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,                                                     \
      (cuda_address to, const void *from, size_t bytes, cuda_stream stream))                       \
    F(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2,                                                     \
      (void *to, cuda_address from, size_t bytes, cuda_stream stream))                             \
    F(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2,                                                     \
      (cuda_address to, cuda_address from, size_t bytes, cuda_stream stream))                      \
    F(cuMemsetD8Async, cuMemsetD8Async,                                                            \
      (cuda_address to, unsigned char byte, size_t bytes, cuda_stream stream))                     \
    F(cuStreamCreateWithPriority, cuStreamCreateWithPriority,                                      \
      (cuda_stream * stream, unsigned flags, int priority))                                        \
    F(cuStreamDestroy, cuStreamDestroy_v2, (cuda_stream stream))                                   \
    F(cuStreamWaitEvent, cuStreamWaitEvent,                                                        \
      (cuda_stream stream, cuda_event event, unsigned flags))                                      \
    F(cuStreamSynchronize, cuStreamSynchronize, (cuda_stream stream))                              \
    F(cuStreamWriteValue32, cuStreamWriteValue32_v2,                                               \
      (cuda_stream stream, cuda_address address, uint32_t value, unsigned flags))                  \
    F(cuStreamWaitValue32, cuStreamWaitValue32_v2,                                                 \
      (cuda_stream stream, cuda_address address, uint32_t value, unsigned flags))                  \
    F(cuEventCreate, cuEventCreate, (cuda_event * event, unsigned flags))                          \
    F(cuEventDestroy, cuEventDestroy_v2, (cuda_event event))                                       \
    F(cuEventRecord, cuEventRecord, (cuda_event event, cuda_stream stream))                        \
    F(cuEventQuery, cuEventQuery, (cuda_event event))                                              \
    F(cuEventElapsedTime, cuEventElapsedTime,                                                      \
      (float *milliseconds, cuda_event start, cuda_event end))                                     \
    F(cuModuleLoadData, cuModuleLoadData, (cuda_module * module, const void *image))               \
    F(cuModuleUnload, cuModuleUnload, (cuda_module module))                                        \
    F(cuModuleGetFunction, cuModuleGetFunction,                                                    \
      (cuda_function * function, cuda_module module, const char *name))                            \
    F(cuFuncSetAttribute, cuFuncSetAttribute,                                                      \
      (cuda_function function, unsigned attribute, int value))                                     \
    F(cuFuncGetAttribute, cuFuncGetAttribute,                                                      \
      (int *value, unsigned attribute, cuda_function function))                                    \
    F(cuLaunchKernel, cuLaunchKernel,                                                              \
      (cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,                  \
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,                \
       cuda_stream stream, void **arguments, void **extra))                                        \
    F(cuIpcGetMemHandle, cuIpcGetMemHandle, (cuda_ipc_memory * handle, cuda_address address))      \
    F(cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2,                                                   \
      (cuda_address * address, cuda_ipc_memory handle, unsigned flags))                            \
    F(cuIpcCloseMemHandle, cuIpcCloseMemHandle, (cuda_address address))                            \
    F(cuIpcGetEventHandle, cuIpcGetEventHandle, (cuda_ipc_event * handle, cuda_event event))       \
    F(cuIpcOpenEventHandle, cuIpcOpenEventHandle, (cuda_event * event, cuda_ipc_event handle))     \
    F(cuStreamBeginCapture, cuStreamBeginCapture_v2, (cuda_stream stream, unsigned mode))          \
    F(cuStreamEndCapture, cuStreamEndCapture, (cuda_stream stream, cuda_graph * graph))            \
    F(cuGraphInstantiate, cuGraphInstantiateWithFlags,                                             \
      (cuda_graph_program * program, cuda_graph graph, unsigned long long flags))                  \
    F(cuGraphLaunch, cuGraphLaunch, (cuda_graph_program program, cuda_stream stream))              \
    F(cuGraphExecDestroy, cuGraphExecDestroy, (cuda_graph_program program))                        \
    F(cuGraphDestroy, cuGraphDestroy, (cuda_graph graph))

typedef struct cuda_driver {
#define CUDA_DRIVER_MEMBER(name, symbol, arguments) cuda_result(*name) arguments;
    CUDA_DRIVER_FUNCTIONS(CUDA_DRIVER_MEMBER)
#undef CUDA_DRIVER_MEMBER
    int version;    /* the CUDA that the driver serves: 13000 is 13.0 */
    char path[512]; /* of libcuda; "" if the table was given */
} cuda_driver;

/* Oldest driver whose functions the table can hold: CUDA 12.0. */
#define CUDA_DRIVER_LEAST 12000

/* Loads libcuda.so.1, fills the table and starts the driver. `least` is the version that the
 * kernels were compiled for, 0 if there are none. SIFR_FAILED says which of these it is: no driver,
 * an incomplete one, one that is too old, or no GPU. `driver` belongs to the caller. The library
 * stays loaded until the process ends, because threads of it may run. */
sifr_status cuda_driver_open(cuda_driver *driver, int least, sifr_error *error) SIFR_MUST_CHECK;

/* The second half of that, for a table that the caller filled: every function must be there. */
sifr_status cuda_driver_start(cuda_driver *driver, int least, sifr_error *error) SIFR_MUST_CHECK;

/* The status of a driver's result. The message is "WHAT: NAME (text)" in the driver's words.
 * CUDA_OUT_OF_MEMORY is SIFR_NO_MEMORY, other errors are SIFR_FAILED. */
sifr_status cuda_driver_status(const cuda_driver *driver, cuda_result result, sifr_error *error,
                               const char *what, ...) SIFR_PRINTF(4, 5) SIFR_MUST_CHECK;

/* Calls a function of the table, and returns its status, with the function's name, if it fails:
 *     CUDA_TRY(driver, error, cuStreamSynchronize, stream); */
#define CUDA_TRY(driver, error, name, ...)                                                         \
    BASE_TRY(cuda_driver_status((driver), (driver)->name(__VA_ARGS__), (error), "%s", #name))

/* True if every later call of the process will fail, too: a kernel reached memory that is not its
 * own, bits of the memory are damaged, or the like. <cuda.h> says of each result whether the
 * process must be started again; test_cuda_header.sh compares. */
bool cuda_driver_is_lost(cuda_result result);

typedef struct cuda_gpu {
    cuda_device_handle handle;
    char name[128];
    char uuid[48]; /* as nvidia-smi and CUDA_VISIBLE_DEVICES write it: "GPU-8f2a..." */
    char bus[32];  /* "0000:1B:00.0" */
    int capability_major, capability_minor;
    int multiprocessors;
    int shared_bytes; /* the most that a block can have */
    uint64_t memory;  /* bytes */
} cuda_gpu;

/* The GPUs that this process may use, in CUDA's order. */
sifr_status cuda_driver_count(const cuda_driver *driver, int *count,
                              sifr_error *error) SIFR_MUST_CHECK;
sifr_status cuda_driver_gpu(const cuda_driver *driver, int index, cuda_gpu *out,
                            sifr_error *error) SIFR_MUST_CHECK;

#endif
