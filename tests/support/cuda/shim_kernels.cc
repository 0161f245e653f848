/* The kernels by number. */
#include "support/cuda/shim_kernels.h"

#include "device/cuda/arguments.h"

extern "C" {
#define CUDA_KERNEL(name, arguments)                                                               \
    void sifr_##name(const arguments a);                                                           \
    extern const unsigned sifr_threads_##name;
#include "device/cuda/kernel_list.h"
#undef CUDA_KERNEL
}

#define CUDA_KERNEL(name, arguments)                                                               \
    [](const void *a) { sifr_##name(*static_cast<const arguments *>(a)); },
shim_kernel *const shim_kernels[] = {
#include "device/cuda/kernel_list.h"
};
#undef CUDA_KERNEL

#define CUDA_KERNEL(name, arguments) &sifr_threads_##name,
const unsigned *const shim_most_threads[] = {
#include "device/cuda/kernel_list.h"
};
#undef CUDA_KERNEL
