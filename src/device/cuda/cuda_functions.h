/* The kernels of a program, loaded into the context of a GPU, which is current in all calls. */
#ifndef CUDA_FUNCTIONS_H
#define CUDA_FUNCTIONS_H

#include "device/cuda/cuda_driver.h"
#include "device/cuda/cuda_images.h"
#include "device/cuda/cuda_launch.h"

enum { CUDA_MOST_IMAGES = 64 };

/* Of zeros before anything is loaded. */
typedef struct cuda_functions {
    cuda_module modules[CUDA_MOST_IMAGES];
    size_t module_count;
    cuda_function of[CUDA_KERNELS]; /* NULL: not in any image */
    uint32_t shared[CUDA_KERNELS];  /* bytes of a block that were asked for so far */
} cuda_functions;

/* `images`: NULL for those inside the program. After a failure unload what was loaded. SIFR_FAILED
 * if there are none, or the driver takes none for this GPU. */
sifr_status cuda_functions_load(const cuda_driver *driver, const cuda_gpu *gpu,
                                const cuda_image *images, size_t count, cuda_functions *out,
                                sifr_error *error) SIFR_MUST_CHECK;
void cuda_functions_unload(const cuda_driver *driver, cuda_functions *functions);

/* The function of a launch's kernel, with the shared memory that it needs. SIFR_FAILED if the
 * kernel is missing, or needs more than a block of this GPU has. */
sifr_status cuda_functions_get(const cuda_driver *driver, const cuda_gpu *gpu,
                               cuda_functions *functions, const cuda_launch *launch,
                               cuda_function *out, sifr_error *error) SIFR_MUST_CHECK;

#endif
