/* The functions of device.h, by the backend. */
#include <stdlib.h>

#include "device/backend.h"
#include "device/check/check.h"

bool device_is_separate(const device *dev) {
    return dev->backend->count != NULL;
}

void device_close(device *dev) {
    if (dev) dev->backend->close(dev);
}

int device_threads(const device *dev) {
    return host_team_threads(dev->team);
}

void device_parallel(device *dev, int64_t tiles,
                     void (*run)(void *argument, int64_t tile, int thread), void *argument) {
    host_parallel(dev->team, tiles, run, argument);
}

const char *device_isa(const device *dev) {
    return dev->backend->isa(dev);
}

void device_describe(const device *dev, char *out, size_t size) {
    dev->backend->describe(dev, out, size);
}

sifr_status device_prepare(device *dev, device_call *call, sifr_error *error) {
    call->scratch_bytes = 0;
    call->prepared = NULL;
    BASE_TRY(device_check_call(call, error));
    return dev->backend->prepare(dev, call, error);
}

sifr_status device_run(device *dev, const device_call *call, sifr_error *error) {
    return dev->backend->run(dev, call, error);
}

sifr_status device_measure(device *dev, void *memory, int64_t bytes, device_limits *out,
                           sifr_error *error) {
    return dev->backend->measure(dev, memory, bytes, out, error);
}

sifr_status device_take(device *dev, int64_t bytes, void **out, sifr_error *error) {
    return dev->backend->take(dev, DEVICE_MEMORY, bytes, out, error);
}

sifr_status device_take_host(device *dev, int64_t bytes, void **out, sifr_error *error) {
    return dev->backend->take(dev, DEVICE_HOST, bytes, out, error);
}

sifr_status device_take_shared(device *dev, int64_t bytes, void **out, int *file,
                               sifr_error *error) {
    return dev->backend->take_shared(dev, bytes, out, file, error);
}

void device_give(device *dev, void *block, int64_t bytes) {
    dev->backend->give(dev, block, bytes);
}

sifr_status device_copy(device *dev, void *to, const void *from, int64_t bytes, sifr_error *error) {
    return dev->backend->copy(dev, to, from, bytes, error);
}

bool device_is_hidden(const device *dev) {
    return dev->backend->room != NULL;
}

int64_t device_room(const device *dev) {
    return dev->backend->room ? dev->backend->room(dev) : 0;
}

device_counts device_count(const device *dev) {
    return dev->backend->count ? dev->backend->count(dev) : (device_counts){0};
}
