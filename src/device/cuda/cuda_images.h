/* The kernels as nvcc compiled them, inside the program: a fatbin for each .cu file, with code for
 * several GPUs. A program that was built without CUDA has none. */
#ifndef CUDA_IMAGES_H
#define CUDA_IMAGES_H

#include <stddef.h>
#include <stdint.h>

typedef struct cuda_image {
    const char *name;        /* the .cu file's, without its end */
    const void *data;        /* for cuModuleLoadData, which finds its end */
    const uint16_t *kernels; /* what is in it, as cuda_kernel; NULL: all, for tests */
    size_t kernel_count;
} cuda_image;

/* Sets *count; NULL and 0 if the program was built without CUDA. */
const cuda_image *cuda_images(size_t *count);

/* The CUDA of the compiler, 13000 for 13.0, and the GPUs that have code of their own, as nvcc names
 * them ("80 90a"). 0 and "" if the program was built without CUDA. */
int cuda_images_version(void);
const char *cuda_images_targets(void);

#endif
