/* Finding the driver, starting it, its GPUs, and its errors as sifr's. */
#include "device/cuda/cuda_driver.h"

#include <dlfcn.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libcuda.so.1"

/* The release of the driver that came with a version of CUDA: what people install by. */
static int release_of(int version) {
    return version >= 13000 ? 580 : 525;
}

static int least_of(int least) {
    return least > CUDA_DRIVER_LEAST ? least : CUDA_DRIVER_LEAST;
}

/* A driver serves programs of its own major version, also of a later minor one. */
static sifr_status check_version(const cuda_driver *driver, int least, sifr_error *error) {
    int needed = least_of(least);
    if (driver->version / 1000 >= needed / 1000) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "NVIDIA's driver is too old: it serves CUDA %d.%d, and sifr needs %d.%d; "
                     "install driver %d or newer",
                     driver->version / 1000, driver->version % 1000 / 10, needed / 1000,
                     needed % 1000 / 10, release_of(needed));
}

/* Fills the table; returns the first symbol that is missing, or NULL. */
static const char *fill(cuda_driver *driver, void *library) {
    static const struct {
        const char *symbol;
        size_t place;
    } functions[] = {
#define PLACE(name, symbol, arguments) {#symbol, offsetof(cuda_driver, name)},
        CUDA_DRIVER_FUNCTIONS(PLACE)
#undef PLACE
    };
    const char *missing = NULL;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(library, functions[i].symbol);
        if (!function && !missing) missing = functions[i].symbol;
        memcpy((char *)driver + functions[i].place, &function, sizeof function);
    }
    return missing;
}

sifr_status cuda_driver_open(cuda_driver *driver, int least, sifr_error *error) {
    *driver = (cuda_driver){0};
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        return base_fail(error, SIFR_FAILED,
                         "no driver of NVIDIA's was found (%s); install driver %d or newer, or let "
                         "the container have the host's (docker run --gpus all)",
                         why ? why : LIBRARY, release_of(least_of(least)));
    }
    struct link_map *map = NULL;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name)
        snprintf(driver->path, sizeof driver->path, "%s", map->l_name);
    const char *missing = fill(driver, library);
    if (!missing) return cuda_driver_start(driver, least, error);
    /* A driver that tells its version is told apart from a library that is something else. */
    if (driver->cuDriverGetVersion && driver->cuDriverGetVersion(&driver->version) == CUDA_OK)
        BASE_TRY(check_version(driver, least, error));
    return base_fail(error, SIFR_FAILED,
                     "%s has no %s, so it is no driver of CUDA %d.%d; install driver %d or newer",
                     driver->path[0] ? driver->path : LIBRARY, missing, least_of(least) / 1000,
                     least_of(least) % 1000 / 10, release_of(least_of(least)));
}

/* Why cuInit failed, where the driver's own words do not say what to do. */
static sifr_status fail_init(const cuda_driver *driver, cuda_result result, sifr_error *error) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    switch (result) {
    case CUDA_NO_DEVICE:
        if (visible)
            return base_fail(error, SIFR_FAILED,
                             "NVIDIA's driver sees no GPU with CUDA_VISIBLE_DEVICES=\"%s\"; unset "
                             "it, or name GPUs that nvidia-smi lists",
                             visible);
        return base_fail(error, SIFR_FAILED,
                         "NVIDIA's driver is here and sees no GPU; nvidia-smi must list one");
    case CUDA_STUB_LIBRARY:
        return base_fail(error, SIFR_FAILED,
                         "%s is CUDA's library for linking programs, not a driver; take its folder "
                         "out of LD_LIBRARY_PATH",
                         driver->path[0] ? driver->path : LIBRARY);
    case CUDA_SYSTEM_DRIVER_MISMATCH:
        return base_fail(error, SIFR_FAILED,
                         "NVIDIA's kernel module and %s are of different versions; restart the "
                         "machine after an update of the driver",
                         driver->path[0] ? driver->path : LIBRARY);
    case CUDA_SYSTEM_NOT_READY:
        return base_fail(error, SIFR_FAILED,
                         "NVIDIA's driver is not ready; on machines with NVSwitch the service "
                         "nvidia-fabricmanager must run");
    default:
        return cuda_driver_status(driver, result, error, "NVIDIA's driver does not start: cuInit");
    }
}

sifr_status cuda_driver_start(cuda_driver *driver, int least, sifr_error *error) {
    CUDA_TRY(driver, error, cuDriverGetVersion, &driver->version);
    BASE_TRY(check_version(driver, least, error));
    cuda_result result = driver->cuInit(0);
    return result == CUDA_OK ? SIFR_OK : fail_init(driver, result, error);
}

sifr_status cuda_driver_status(const cuda_driver *driver, cuda_result result, sifr_error *error,
                               const char *what, ...) {
    if (result == CUDA_OK) return SIFR_OK;
    char doing[512];
    const char *name = NULL, *text = NULL;
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(doing, sizeof doing, what, arguments);
    va_end(arguments);
    if (driver->cuGetErrorName(result, &name) != CUDA_OK || !name) name = "an unknown CUDA error";
    if (driver->cuGetErrorString(result, &text) != CUDA_OK || !text) text = "no text";
    return base_fail(error, result == CUDA_OUT_OF_MEMORY ? SIFR_NO_MEMORY : SIFR_FAILED,
                     "%s: %s %u (%s)%s", doing, name, result, text,
                     cuda_driver_is_lost(result)
                         ? "; this process cannot use the GPU any more: start it again"
                         : "");
}

bool cuda_driver_is_lost(cuda_result result) {
    switch (result) {
    case CUDA_ECC_UNCORRECTABLE:
    case CUDA_NVLINK_UNCORRECTABLE:
    case CUDA_CONTAINED:
    case CUDA_ILLEGAL_ADDRESS:
    case CUDA_LAUNCH_TIMEOUT:
    case CUDA_CONTEXT_IS_DESTROYED:
    case CUDA_ASSERT:
    case CUDA_TENSOR_MEMORY_LEAK:
    case CUDA_MPS_CLIENT_TERMINATED:
    case CUDA_EXTERNAL_DEVICE:
        return true;
    default:
        return result >= CUDA_HARDWARE_STACK_ERROR && result <= CUDA_LAUNCH_FAILED;
    }
}

sifr_status cuda_driver_count(const cuda_driver *driver, int *count, sifr_error *error) {
    *count = 0;
    CUDA_TRY(driver, error, cuDeviceGetCount, count);
    return SIFR_OK;
}

static void write_uuid(const cuda_uuid *uuid, char *out, size_t size) {
    const unsigned char *b = uuid->bytes;
    snprintf(out, size, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
}

sifr_status cuda_driver_gpu(const cuda_driver *driver, int index, cuda_gpu *out,
                            sifr_error *error) {
    cuda_uuid uuid;
    size_t memory = 0;
    *out = (cuda_gpu){0};
    CUDA_TRY(driver, error, cuDeviceGet, &out->handle, index);
    CUDA_TRY(driver, error, cuDeviceGetName, out->name, sizeof out->name, out->handle);
    CUDA_TRY(driver, error, cuDeviceGetUuid, &uuid, out->handle);
    CUDA_TRY(driver, error, cuDeviceGetPCIBusId, out->bus, sizeof out->bus, out->handle);
    CUDA_TRY(driver, error, cuDeviceTotalMem, &memory, out->handle);
    const struct {
        int *value;
        unsigned attribute;
    } attributes[] = {
        {&out->capability_major, CUDA_DEVICE_CAPABILITY_MAJOR},
        {&out->capability_minor, CUDA_DEVICE_CAPABILITY_MINOR},
        {&out->multiprocessors, CUDA_DEVICE_MULTIPROCESSORS},
        {&out->shared_bytes, CUDA_DEVICE_SHARED_BYTES},
    };
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        CUDA_TRY(driver, error, cuDeviceGetAttribute, attributes[i].value, attributes[i].attribute,
                 out->handle);
    write_uuid(&uuid, out->uuid, sizeof out->uuid);
    out->name[sizeof out->name - 1] = '\0';
    out->memory = memory;
    return SIFR_OK;
}
