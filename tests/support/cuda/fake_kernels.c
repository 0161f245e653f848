#include "support/cuda/fake_kernels.h"

#include <stdatomic.h>

#include "device/cuda/arguments.h"
#include "support/cuda/shim_run.h"

static _Atomic int shim_order;

static void run(const fake_launch *launch, const void *arguments);

static const fake_kernel kernels[CUDA_KERNELS] = {
#define CUDA_KERNEL(name, arguments)                                                               \
    [cuda_kernel_##name] = {"sifr_" #name, sizeof(arguments), 0, run, NULL},
#include "device/cuda/kernel_list.h"
#undef CUDA_KERNEL
};

static void run(const fake_launch *launch, const void *arguments) {
    const cuda_launch shim = {.kernel = (cuda_kernel)(launch->kernel - kernels),
                              .blocks = {launch->grid[0], launch->grid[1], launch->grid[2]},
                              .threads = launch->block[0] * launch->block[1] * launch->block[2],
                              .shared_bytes = launch->shared_bytes,
                              .arguments = arguments};
    shim_run(&shim, atomic_load_explicit(&shim_order, memory_order_relaxed));
}

const fake_kernel *fake_shim_kernels(int order, size_t *count) {
    atomic_store_explicit(&shim_order, order, memory_order_relaxed);
    *count = CUDA_KERNELS;
    return kernels;
}
