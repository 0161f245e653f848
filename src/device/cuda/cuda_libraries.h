/* NVIDIA's libraries that sifr uses where they are there: found at run time, never linked. */
#ifndef CUDA_LIBRARIES_H
#define CUDA_LIBRARIES_H

#include "device/kinds.h"

typedef enum cuda_library_kind {
    CUDA_LIBRARY_LT,   /* cuBLASLt: fast matrix products */
    CUDA_LIBRARY_NCCL, /* between hosts */
    CUDA_LIBRARY_KINDS
} cuda_library_kind;

const char *cuda_library_name(cuda_library_kind kind);

/* Loads the first of these that there is: in the folders of SIFR_CUDA_LIBRARIES (with colons
 * between), where the loader looks, in /usr/local/cuda/lib64, in lib/sifr/cuda of the program's
 * prefix, among the packages of the python3 in PATH. `driver` is the version that the driver serves
 * (cuda_driver.version), 0 if there is none: a later major version than the driver's is not taken.
 * SIFR_FAILED says what was looked for. Not thread-safe beside changes of the environment. */
sifr_status cuda_library_open(cuda_library_kind kind, int driver, device_library *out,
                              sifr_error *error) SIFR_MUST_CHECK;

#endif
