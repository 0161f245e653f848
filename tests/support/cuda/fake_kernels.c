#include "support/cuda/fake_kernels.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "device/cuda/arguments.h"
#include "support/cuda/shim_run.h"

static _Atomic int shim_order;
static _Atomic int planted[FAKE_FAULTS]; /* 1 + the kernel; 0: none */

static void run(const fake_launch *launch, const void *arguments);

static const fake_kernel kernels[CUDA_KERNELS] = {
#define CUDA_KERNEL(name, arguments)                                                               \
    [cuda_kernel_##name] = {"sifr_" #name, sizeof(arguments), 0, run, NULL},
#include "device/cuda/kernel_list.h"
#undef CUDA_KERNEL
};

static bool has(fake_fault fault, cuda_kernel kernel) {
    return atomic_load_explicit(&planted[fault], memory_order_relaxed) == 1 + (int)kernel;
}

static void run(const fake_launch *launch, const void *arguments) {
    const cuda_launch shim = {.kernel = (cuda_kernel)(launch->kernel - kernels),
                              .blocks = {launch->grid[0], launch->grid[1], launch->grid[2]},
                              .threads = launch->block[0] * launch->block[1] * launch->block[2],
                              .shared_bytes = launch->shared_bytes,
                              .arguments = arguments};
    while (has(FAKE_HANG, shim.kernel)) pause();
    if (has(FAKE_WRONG, shim.kernel)) return;
    shim_run(&shim, atomic_load_explicit(&shim_order, memory_order_relaxed));
}

const fake_kernel *fake_shim_kernels(int order, size_t *count) {
    atomic_store_explicit(&shim_order, order, memory_order_relaxed);
    *count = CUDA_KERNELS;
    return kernels;
}

bool fake_shim_plant(fake_fault fault, const char *name) {
    int kernel = 0;
    while (name[0] && kernel < CUDA_KERNELS &&
           strcmp(cuda_kernel_name((cuda_kernel)kernel), name) != 0)
        kernel++;
    if (kernel == CUDA_KERNELS) return false;
    atomic_store_explicit(&planted[fault], name[0] ? 1 + kernel : 0, memory_order_relaxed);
    return true;
}
