/* The kinds of devices before one is opened: what of a kind is on this machine, and what this
 * program brings for it. A kind is a row of its backend (device/backend.h), so nobody outside
 * device/ includes a backend's header. A kind that lacks something says so in a message.
 */
#ifndef DEVICE_KINDS_H
#define DEVICE_KINDS_H

#include "base/file.h"
#include "device/device.h"

/* The kind's name in settings and options: "auto", "cpu", "cuda". */
const char *device_kind_name(sifr_device kind);
/* False if no kind is called so. */
bool device_kind_find(const char *name, sifr_device *out);

/* What the program was built with for a kind. */
typedef struct device_build {
    int version;          /* the kernels' compiler: 13000 is CUDA 13.0; 0: there are no kernels */
    const char *targets;  /* that have code of their own ("80 90a"); "" without kernels */
    int least_capability; /* major compute capability that the kernels need; 0: any */
} device_build;
device_build device_build_of(sifr_device kind);

/* A GPU as its driver describes it. */
typedef struct device_gpu {
    char name[128];
    char uuid[48]; /* as nvidia-smi and CUDA_VISIBLE_DEVICES write it: "GPU-8f2a..." */
    char bus[32];  /* "0000:1B:00.0" */
    int capability_major, capability_minor;
    int multiprocessors;
    uint64_t memory; /* bytes */
} device_gpu;

typedef struct device_found {
    device_gpu gpu;
    int index, count; /* of the GPUs that this process may use */
} device_found;

/* The GPU of rank `rank` of a host: that number modulo the number of GPUs that the process may use.
 * Takes nothing of it. SIFR_FAILED says what keeps the rank from using one: no kernels in the
 * program, no driver, one that is too old, no GPU, or none with a kernel. */
sifr_status device_choose(sifr_device kind, int32_t rank, device_found *out,
                          sifr_error *error) SIFR_MUST_CHECK;

/* Whether there is a device of the kind for this process, also where the program has no kernels for
 * it. */
bool device_is_there(sifr_device kind);

typedef struct device_driver {
    int version;    /* the CUDA that it serves: 13000 is 13.0; 0: it did not start */
    char path[512]; /* of its library */
} device_driver;

/* Starts the driver and calls each(argument, gpu) for the GPUs that this process may use, also for
 * those without a kernel, in the driver's order and up to the first error. */
sifr_status device_survey(sifr_device kind, device_driver *driver,
                          void (*each)(void *argument, const device_gpu *gpu), void *argument,
                          sifr_error *error) SIFR_MUST_CHECK;

/* --- a GPU that need not be there, for plans --- */

typedef struct device_description {
    int32_t compute_capability; /* 90 for 9.0; 0: not known */
    int32_t multiprocessors;    /* 0: not known */
} device_description;

/* A device of `threads` threads of the host (at least 1). device_prepare works, and is what the
 * GPU's own would be. All that needs memory, or runs, is SIFR_USAGE, and so is a kind that cannot
 * be described. */
sifr_status device_open_described(sifr_device kind, int threads,
                                  const device_description *description, device **out,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* --- libraries of the kind's vendor, found at run time and never linked --- */

typedef struct device_library {
    void *handle;                /* for device_library_symbol; loaded until the process ends */
    char path[BASE_PATH_LENGTH]; /* of the file */
    const char *place;           /* which of the places that were searched */
    int major, minor, patch;     /* zeros: not known */
} device_library;

/* The name of library `number` from 0 on: "cuBLASLt", "NCCL"; NULL after the last one. */
const char *device_library_name(sifr_device kind, int number);

/* Loads the library of that name. `driver` is the version that the driver serves, 0 if there is
 * none: a later major version than the driver's is not taken. SIFR_FAILED says what was looked for.
 * Not thread-safe beside changes of the environment. */
sifr_status device_library_open(sifr_device kind, const char *name, int driver, device_library *out,
                                sifr_error *error) SIFR_MUST_CHECK;

/* A function of a library that was opened; NULL if the library has none of that name. */
void *device_library_symbol(const device_library *library, const char *symbol);

#endif
