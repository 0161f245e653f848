#include "comm/nccl/nccl_library.h"

#include <string.h>

#include "device/kinds.h"

enum { LEAST_MAJOR = 2, LEAST_MINOR = 18 };

/* Fills the table; returns the first symbol that is missing, or NULL. */
static const char *fill(nccl_library *nccl, const device_library *library) {
    static const struct {
        const char *symbol;
        size_t place;
    } functions[] = {
#define PLACE(name, arguments) {#name, offsetof(nccl_library, name)},
        NCCL_FUNCTIONS(PLACE) PLACE(ncclGetErrorString, )
#undef PLACE
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = device_library_symbol(library, functions[i].symbol);
        if (!function) return functions[i].symbol;
        memcpy((char *)nccl + functions[i].place, &function, sizeof function);
    }
    return NULL;
}

sifr_status nccl_library_open(nccl_library *out, sifr_error *error) {
    device_library library;
    *out = (nccl_library){0};
    BASE_TRY(device_library_open(SIFR_DEVICE_CUDA, "NCCL", 0, &library, error));
    out->major = library.major, out->minor = library.minor, out->patch = library.patch;
    memcpy(out->path, library.path, sizeof out->path);
    if (out->major < LEAST_MAJOR || (out->major == LEAST_MAJOR && out->minor < LEAST_MINOR))
        return base_fail(error, SIFR_FAILED, "NCCL %d.%d.%d is older than %d.%d (%s)", out->major,
                         out->minor, out->patch, LEAST_MAJOR, LEAST_MINOR, out->path);
    const char *missing = fill(out, &library);
    if (!missing) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s has no %s, so it is no NCCL 2", out->path, missing);
}

sifr_status nccl_library_check(const nccl_library *library, nccl_result result, const char *what,
                               sifr_error *error) {
    if (result == NCCL_OK || result == NCCL_IN_PROGRESS) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "NCCL: %s: %s", what, library->ncclGetErrorString(result));
}
