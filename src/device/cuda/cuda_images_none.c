/* For programs that are built without CUDA (cmake/cuda.cmake). */
#include "device/cuda/cuda_images.h"

const cuda_image *cuda_images(size_t *count) {
    *count = 0;
    return NULL;
}

int cuda_images_version(void) {
    return 0;
}

const char *cuda_images_targets(void) {
    return "";
}
