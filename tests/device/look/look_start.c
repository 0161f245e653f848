/* The driver, the GPU, contexts and the program's kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "device/look/look.h"
#include "support/cuda/fake_gpu.h"

sifr_status look_start(look *l, sifr_error *error) {
    if (l->driver) return SIFR_OK;
    double begun = base_seconds();
    const cuda_driver *driver;
    BASE_TRY(fake_gpu_begin(&driver, error));
    l->start_seconds = base_seconds() - begun;
    l->driver = driver;
    return SIFR_OK;
}

sifr_status look_gpu(look *l, sifr_error *error) {
    BASE_TRY(look_start(l, error));
    return l->gpu.name[0] ? SIFR_OK : cuda_driver_gpu(l->driver, 0, &l->gpu, error);
}

sifr_status look_context(look *l, sifr_error *error) {
    BASE_TRY(look_gpu(l, error));
    if (!l->context) {
        double begun = base_seconds();
        cuda_context context;
        CUDA_TRY(l->driver, error, cuDevicePrimaryCtxRetain, &context, l->gpu.handle);
        l->context_seconds = base_seconds() - begun;
        l->context = context;
    }
    CUDA_TRY(l->driver, error, cuCtxSetCurrent, l->context);
    return SIFR_OK;
}

sifr_status look_streams(look *l, sifr_error *error) {
    BASE_TRY(look_context(l, error));
    for (int i = 0; i < LOOK_BLOCKS; i++)
        if (!l->streams[i])
            CUDA_TRY(l->driver, error, cuStreamCreateWithPriority, &l->streams[i],
                     CUDA_STREAM_NON_BLOCKING, 0);
    return SIFR_OK;
}

/* The release, 580.95.05 or the like: CUDA's functions do not tell it. */
static void read_release(char *out, size_t size) {
    char line[256], *at;
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    out[0] = '\0';
    if (!file) return;
    if (fgets(line, sizeof line, file) && (at = strstr(line, "Module"))) {
        char word[64] = "";
        for (at += strcspn(at, " "); sscanf(at, " %63s", word) == 1 && !strchr(word, '.');)
            at += strspn(at, " "), at += strcspn(at, " ");
        if (strchr(word, '.')) snprintf(out, size, "release %s, ", word);
    }
    fclose(file);
}

sifr_status look_row_driver(look *l, char *figure, sifr_error *error) {
    char release[80] = "";
    BASE_TRY(look_start(l, error));
    if (fake_gpu_is_real()) read_release(release, sizeof release);
    snprintf(figure, LOOK_TEXT, "%sCUDA %d.%d, %s", release, l->driver->version / 1000,
             l->driver->version % 1000 / 10, l->driver->path[0] ? l->driver->path : "played");
    return SIFR_OK;
}

sifr_status look_row_gpu(look *l, char *figure, sifr_error *error) {
    int engines = 0;
    BASE_TRY(look_gpu(l, error));
    CUDA_TRY(l->driver, error, cuDeviceGetAttribute, &engines, CUDA_DEVICE_COPY_ENGINES,
             l->gpu.handle);
    snprintf(figure, LOOK_TEXT,
             "%s, %s, compute capability %d.%d, %d multiprocessors, %d copy engines", l->gpu.name,
             l->gpu.uuid, l->gpu.capability_major, l->gpu.capability_minor, l->gpu.multiprocessors,
             engines);
    return SIFR_OK;
}

sifr_status look_row_context(look *l, char *figure, sifr_error *error) {
    BASE_TRY(look_context(l, error));
    snprintf(figure, LOOK_TEXT, "%.0f ms, after %.0f ms for the driver's start",
             1e3 * l->context_seconds, 1e3 * l->start_seconds);
    return SIFR_OK;
}

sifr_status look_row_memory(look *l, char *figure, sifr_error *error) {
    size_t left, all;
    BASE_TRY(look_context(l, error));
    CUDA_TRY(l->driver, error, cuMemGetInfo, &left, &all);
    snprintf(figure, LOOK_TEXT, "%.2f GB in all, %.2f GB free beside this one context",
             1e-9 * (double)all, 1e-9 * (double)left);
    return SIFR_OK;
}

/* The context is there before, so that its time is not counted. */
sifr_status look_row_kernels(look *l, char *figure, sifr_error *error) {
    device *dev;
    size_t count;
    BASE_TRY(look_context(l, error));
    double begun = base_seconds();
    BASE_TRY(fake_gpu_open(&dev, error));
    double took = base_seconds() - begun;
    device_close(dev);
    (void)cuda_images(&count);
    if (fake_gpu_is_real())
        snprintf(figure, LOOK_TEXT, "%.0f ms for cuda_device_open, %zu images for sm %s",
                 1e3 * took, count, cuda_images_targets());
    else
        snprintf(figure, LOOK_TEXT, "%.0f ms for cuda_device_open, played", 1e3 * took);
    return SIFR_OK;
}
