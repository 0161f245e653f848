/* A GPU as a device. */
#ifndef CUDA_DEVICE_H
#define CUDA_DEVICE_H

#include "device/cuda/cuda_driver.h"
#include "device/cuda/cuda_images.h"
#include "device/device.h"

typedef struct cuda_options {
    const cuda_driver *driver; /* a started one, copied */
    int gpu;                   /* its index */
    int threads;               /* of the host, as for device_open_cpu */
    /* Of the kernels; NULL: those inside the program. */
    const cuda_image *images;
    size_t image_count;
    int64_t token_chunk; /* 0: CUDA_TOKEN_CHUNK; tests take a smaller multiple of 256 */
    bool check;          /* finishes after each kernel, and names the one that failed */
} cuda_options;

/* SIFR_FAILED if the program has no kernels for this GPU, or the driver reports an error. */
sifr_status cuda_device_open(const cuda_options *options, device **out,
                             sifr_error *error) SIFR_MUST_CHECK;

#endif
