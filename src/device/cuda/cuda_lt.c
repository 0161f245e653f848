/* Finding cuBLASLt, and its errors as sifr's. */
#include "device/cuda/cuda_lt.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "device/cuda/cuda_libraries.h"

/* Fills the table; returns the first symbol that is missing, or NULL. */
static const char *fill(cuda_lt *lt, const device_library *library) {
    static const struct {
        const char *symbol;
        size_t place;
    } functions[] = {
#define PLACE(name, arguments) {#name, offsetof(cuda_lt, name)},
        CUDA_LT_FUNCTIONS(PLACE)
#undef PLACE
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = device_library_symbol(library, functions[i].symbol);
        if (!function) return functions[i].symbol;
        memcpy((char *)lt + functions[i].place, &function, sizeof function);
    }
    return NULL;
}

sifr_status cuda_lt_open(int driver, cuda_lt *lt, sifr_error *error) {
    device_library library;
    *lt = (cuda_lt){0};
    BASE_TRY(cuda_library_open(CUDA_LIBRARY_LT, driver, &library, error));
    const char *missing = fill(lt, &library);
    if (missing)
        return base_fail(error, SIFR_FAILED, "%s has no %s, so it is no cuBLASLt of CUDA 12 or 13",
                         library.path, missing);
    lt->major = library.major, lt->minor = library.minor, lt->patch = library.patch;
    return SIFR_OK;
}

const char *cuda_lt_status_name(cuda_lt_status status) {
    static const char *const names[] = {
        [CUDA_LT_OK] = "CUBLAS_STATUS_SUCCESS",
        [CUDA_LT_NOT_INITIALIZED] = "CUBLAS_STATUS_NOT_INITIALIZED",
        [CUDA_LT_ALLOC_FAILED] = "CUBLAS_STATUS_ALLOC_FAILED",
        [CUDA_LT_INVALID_VALUE] = "CUBLAS_STATUS_INVALID_VALUE",
        [CUDA_LT_ARCH_MISMATCH] = "CUBLAS_STATUS_ARCH_MISMATCH",
        [CUDA_LT_MAPPING_ERROR] = "CUBLAS_STATUS_MAPPING_ERROR",
        [CUDA_LT_EXECUTION_FAILED] = "CUBLAS_STATUS_EXECUTION_FAILED",
        [CUDA_LT_INTERNAL_ERROR] = "CUBLAS_STATUS_INTERNAL_ERROR",
        [CUDA_LT_NOT_SUPPORTED] = "CUBLAS_STATUS_NOT_SUPPORTED",
        [CUDA_LT_LICENSE_ERROR] = "CUBLAS_STATUS_LICENSE_ERROR",
    };
    const char *name = status < sizeof names / sizeof *names ? names[status] : NULL;
    return name ? name : "an unknown status of cuBLASLt";
}

sifr_status cuda_lt_check(cuda_lt_status status, sifr_error *error, const char *what, ...) {
    if (status == CUDA_LT_OK) return SIFR_OK;
    char doing[512];
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(doing, sizeof doing, what, arguments);
    va_end(arguments);
    return base_fail(error, status == CUDA_LT_ALLOC_FAILED ? SIFR_NO_MEMORY : SIFR_FAILED,
                     "%s: %s %u", doing, cuda_lt_status_name(status), status);
}
