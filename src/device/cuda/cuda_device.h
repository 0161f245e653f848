/* A GPU as a device. */
#ifndef CUDA_DEVICE_H
#define CUDA_DEVICE_H

#include "device/cuda/cuda_driver.h"
#include "device/cuda/cuda_images.h"
#include "device/cuda/cuda_lt.h"
#include "device/device.h"

typedef struct cuda_options {
    const cuda_driver *driver; /* a started one, copied */
    int gpu;                   /* its index */
    int threads;               /* of the host, as for device_open_cpu */
    int sharers;               /* processes that share the GPU's memory evenly; 0 is 1 */
    /* Of the kernels; NULL: those inside the program. */
    const cuda_image *images;
    size_t image_count;
    int64_t token_chunk;    /* 0: CUDA_TOKEN_CHUNK; tests take a smaller multiple of 256 */
    bool check;             /* finishes each kernel, and names the one that failed or has no end */
    const char *host_waits; /* a constant, why the host waits for transfers and not the queue
                               behind them (flag.h); NULL: the queue waits */
    const cuda_lt *lt;      /* for products, copied; NULL: own kernels */
    bool lt_needed;         /* fails if cuBLASLt does not start, instead of taking own kernels */
    /* Why own kernels run though cuBLASLt was wished for, for device_notice; NULL: no reason to say
     * anything. */
    const char *lt_missing;
    void (*closing)(const device *dev); /* for tests: called before it closes; NULL: nothing is */
} cuda_options;

/* Writes a line for each product that ran by cuBLASLt, with its algorithm (cuda_products_describe);
 * 0 bytes without it. */
size_t cuda_device_products(const device *dev, char *out, size_t size);

/* SIFR_FAILED if the program has no kernels for this GPU, or the driver reports an error. */
sifr_status cuda_device_open(const cuda_options *options, device **out,
                             sifr_error *error) SIFR_MUST_CHECK;

#endif
