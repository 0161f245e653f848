/* In front of what finds a GPU (linked with --wrap): the program of tests/cli/test_gpu_*.sh has one
 * that a fake driver plays, with the kernels over the shim, and a cuBLASLt that a fake plays or,
 * with SIFR_TEST_NO_CUBLASLT in the environment, none; and an NCCL that a fake plays.
 *
 * FAKE_GPU in the environment says what is wrong with it, in "NAME=NUMBER" and commas; for rank r
 * FAKE_GPU_r goes before it. devices: how many there are; driver: the CUDA that it serves;
 * capability: 75 is 7.5; memory: bytes; pinned: 0 refuses host memory for copies; ipc: 0 opens no
 * memory of other processes; context, image: the driver's error for making a context, and for
 * taking the kernels; launches, error: after so many launches every call gives that error; nccl: 0
 * has no NCCL, else its version; nccl_init, nccl_fails: as in fake_nccl.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/launcher.h"
#include "device/cuda/cuda_device.h"
#include "support/cuda/fake_kernels.h"
#include "support/cuda/fake_lt.h"
#include "support/cuda/fake_nccl.h"
#include "support/cuda/shim_run.h"

sifr_status __wrap_cuda_driver_open(cuda_driver *driver, int least, sifr_error *error);
const cuda_image *__wrap_cuda_images(size_t *count);
sifr_status __wrap_cuda_lt_open(int driver, cuda_lt *lt, sifr_error *error);
sifr_status __wrap_nccl_library_open(nccl_library *out, sifr_error *error);
int __wrap_cuda_images_version(void);

static long long wish(const char *name, long long without) {
    char own[32];
    snprintf(own, sizeof own, "FAKE_GPU_%d", comm_launcher_rank());
    const char *at = getenv(own);
    if (!at) at = getenv("FAKE_GPU");
    const size_t length = strlen(name);
    for (; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, name, length) == 0 && at[length] == '=') return atoll(at + length + 1);
    return without;
}

static cuda_driver fake;

static cuda_result no_device(unsigned flags) {
    (void)flags;
    return CUDA_NO_DEVICE;
}

static cuda_result version(int *out) {
    *out = (int)wish("driver", 13000);
    return CUDA_OK;
}

static cuda_result attribute(int *value, unsigned which, cuda_device_handle gpu) {
    const int capability = (int)wish("capability", 90);
    cuda_result result = fake.cuDeviceGetAttribute(value, which, gpu);
    if (which == CUDA_DEVICE_CAPABILITY_MAJOR) *value = capability / 10;
    if (which == CUDA_DEVICE_CAPABILITY_MINOR) *value = capability % 10;
    return result;
}

static cuda_result no_host_memory(void **host, size_t bytes, unsigned flags) {
    (void)host;
    (void)bytes;
    (void)flags;
    return CUDA_OUT_OF_MEMORY;
}

static cuda_result no_foreign_memory(cuda_address *address, cuda_ipc_memory handle,
                                     unsigned flags) {
    (void)address;
    (void)handle;
    (void)flags;
    return CUDA_NOT_SUPPORTED;
}

static cuda_result no_context(cuda_context *context, cuda_device_handle gpu) {
    (void)context;
    (void)gpu;
    return (cuda_result)wish("context", 0);
}

static cuda_result no_image(cuda_module *module, const void *image) {
    (void)module;
    (void)image;
    return (cuda_result)wish("image", 0);
}

/* One for the process, which ends with it: a run opens its device more than once. */
static void play(void) {
    static bool is_open;
    fake_driver_options options = {.memory = (uint64_t)wish("memory", 0)};
    if (is_open) return;
    options.devices = (int)wish("devices", 1);
    options.kernels = fake_shim_kernels(SHIM_UP, &options.kernel_count);
    fake_driver_open(&options, &fake);
    if (wish("launches", -1) >= 0)
        fake_driver_fail_launch(wish("launches", 0),
                                (cuda_result)wish("error", CUDA_LAUNCH_FAILED));
    is_open = true;
}

sifr_status __wrap_cuda_driver_open(cuda_driver *driver, int least, sifr_error *error) {
    play();
    *driver = fake;
    driver->cuDriverGetVersion = version;
    driver->cuDeviceGetAttribute = attribute;
    if (wish("devices", 1) == 0) driver->cuInit = no_device;
    if (wish("pinned", 1) == 0) driver->cuMemHostAlloc = no_host_memory;
    if (wish("ipc", 1) == 0) driver->cuIpcOpenMemHandle = no_foreign_memory;
    if (wish("context", 0)) driver->cuDevicePrimaryCtxRetain = no_context;
    if (wish("image", 0)) driver->cuModuleLoadData = no_image;
    return cuda_driver_start(driver, least, error);
}

const cuda_image *__wrap_cuda_images(size_t *count) {
    static const cuda_image image = {.name = "fake", .data = "fake"};
    *count = 1;
    return &image;
}

sifr_status __wrap_cuda_lt_open(int driver, cuda_lt *lt, sifr_error *error) {
    static const fake_lt_trouble none;
    (void)driver;
    if (getenv("SIFR_TEST_NO_CUBLASLT"))
        return base_fail(error, SIFR_FAILED, "cuBLASLt (libcublasLt.so.13) was not found");
    fake_lt_open(&none, lt);
    return SIFR_OK;
}

sifr_status __wrap_nccl_library_open(nccl_library *out, sifr_error *error) {
    fake_nccl_trouble trouble = {.version = (int)wish("nccl", 22809),
                                 .init = (nccl_result)wish("nccl_init", 0),
                                 .fail_after = (int)wish("nccl_fails", 0)};
    if (!trouble.version) return base_fail(error, SIFR_FAILED, "NCCL (libnccl.so.2) was not found");
    fake_nccl_open(&trouble, out);
    return SIFR_OK;
}

int __wrap_cuda_images_version(void) {
    return 13000;
}
