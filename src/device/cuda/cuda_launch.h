/* Launches of kernels: what the host's side of a kernel gives to a device. */
#ifndef CUDA_LAUNCH_H
#define CUDA_LAUNCH_H

#include "device/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cuda_kernel {
#define CUDA_KERNEL(name, arguments) cuda_kernel_##name,
#include "device/cuda/kernel_list.h"
#undef CUDA_KERNEL
    CUDA_KERNELS
} cuda_kernel;

typedef struct cuda_launch {
    cuda_kernel kernel;
    device_queue queue;
    int64_t blocks[3];     /* x up to 2^31 - 1, y and z up to 65,535 */
    uint32_t threads;      /* of a block */
    uint32_t shared_bytes; /* SHARED_DYNAMIC */
    const void *arguments; /* the struct that the kernel takes; copied */
} cuda_launch;

/* Tokens of a chunk in which GPUs add weight gradients, and labelled rows of a chunk of a head.
 * With 1,024 a GPU would spend as much time on reading and writing the sums of a chunk as on the
 * products. */
enum { CUDA_TOKEN_CHUNK = 8192 };

struct cuda_gemm; /* product/cuda_gemm.h */

/* The first member of every device that runs these kernels. `launch` gives a kernel to its queue.
 * `multiply` gives a product that a library has faster to the compute queue, and then sets *done.
 * Both functions for products are NULL where there is none. */
typedef struct cuda_base {
    struct device device;
    sifr_status (*launch)(struct device *dev, const cuda_launch *launch, sifr_error *error);
    int64_t token_chunk; /* a multiple of 256; CUDA_TOKEN_CHUNK, or less in tests */
    int64_t library_products, own_products; /* of 16-bit matrices, run so far */
    sifr_status (*reserve_product)(struct device *dev, const struct cuda_gemm *gemm,
                                   sifr_error *error);
    sifr_status (*multiply)(struct device *dev, const struct cuda_gemm *gemm, bool *done,
                            sifr_error *error);
} cuda_base;

int64_t cuda_token_chunk(const struct device *dev); /* of such a device */

/* Does nothing if a dimension is 0. SIFR_FAILED if the grid exceeds what a device takes. */
sifr_status cuda_launch_kernel(device *dev, const cuda_launch *launch,
                               sifr_error *error) SIFR_MUST_CHECK;

const char *cuda_kernel_name(cuda_kernel kernel);
size_t cuda_argument_bytes(cuda_kernel kernel);

#ifdef __cplusplus
}
#endif

#endif
