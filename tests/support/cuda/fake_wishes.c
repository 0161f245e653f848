#include "support/cuda/fake_wishes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/launcher.h"
#include "support/cuda/fake_kernels.h"
#include "support/cuda/fake_lt.h"
#include "support/cuda/shim_run.h"

static const char *const names[] = {"devices",   "driver",     "capability", "memory", "context",
                                    "image",     "pinned",     "ipc",        "memops", "launches",
                                    "error",     "wrong",      "hang",       "nccl",   "cublaslt",
                                    "nccl_init", "nccl_fails", NULL};

static const char *wishes(void) {
    char own[32];
    snprintf(own, sizeof own, "FAKE_GPU_%d", comm_launcher_rank());
    const char *all = getenv(own);
    if (!all) all = getenv("FAKE_GPU");
    return all ? all : "";
}

/* Behind a wish and its comma. */
static const char *next(const char *wish) {
    wish += strcspn(wish, ",");
    return wish + (*wish == ',');
}

static bool is_called(const char *wish, const char *name) {
    const size_t length = strlen(name);
    return strncmp(wish, name, length) == 0 && wish[length] == '=';
}

/* The value up to its comma or the end; NULL: none is wished for. */
static const char *find(const char *name) {
    for (const char *at = wishes(); *at; at = next(at))
        if (is_called(at, name)) return at + strlen(name) + 1;
    return NULL;
}

long long fake_wish(const char *name, long long without) {
    const char *value = find(name);
    return value ? atoll(value) : without;
}

static void refuse(const char *wish, const char *why) {
    fprintf(stderr, "FAKE_GPU: %.*s: %s\n", (int)strcspn(wish, ","), wish, why);
    exit(2);
}

static void check_names(void) {
    for (const char *at = wishes(); *at; at = next(at)) {
        size_t i = 0;
        while (names[i] && !is_called(at, names[i])) i++;
        if (!names[i]) refuse(at, "no such wish; support/cuda/fake_wishes.h lists them");
    }
}

static void plant_in(const char *name, fake_fault fault) {
    char kernel[128] = "";
    const char *value = find(name);
    if (value) snprintf(kernel, sizeof kernel, "%.*s", (int)strcspn(value, ","), value);
    if (!fake_shim_plant(fault, kernel)) refuse(value, "no such kernel");
}

/* --- functions that take the place of the fake driver's --- */

static cuda_driver plain;

static cuda_result no_device(unsigned flags) {
    (void)flags;
    return CUDA_NO_DEVICE;
}

static cuda_result version(int *out) {
    *out = (int)fake_wish("driver", 13000);
    return CUDA_OK;
}

static cuda_result attribute(int *value, unsigned which, cuda_device_handle gpu) {
    const int capability = (int)fake_wish("capability", 90);
    cuda_result result = plain.cuDeviceGetAttribute(value, which, gpu);
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
    return (cuda_result)fake_wish("context", 0);
}

static cuda_result no_image(cuda_module *module, const void *image) {
    (void)module;
    (void)image;
    return (cuda_result)fake_wish("image", 0);
}

static cuda_result no_wait(cuda_stream stream, cuda_address word, uint32_t value, unsigned flags) {
    (void)stream;
    (void)word;
    (void)value;
    (void)flags;
    return CUDA_NOT_SUPPORTED;
}

/* A trial, for a word that is there, passes as it would. */
static cuda_result wait_for_ever(cuda_stream stream, cuda_address word, uint32_t value,
                                 unsigned flags) {
    if (value == 0) return plain.cuStreamWaitValue32(stream, word, value, flags);
    return plain.cuStreamWaitValue32(stream, word, UINT32_MAX, CUDA_WAIT_EQUAL);
}

void fake_wishes_open(cuda_driver *out) {
    fake_driver_options options = {.memory = (uint64_t)fake_wish("memory", 0),
                                   .devices = (int)fake_wish("devices", 1)};
    check_names();
    plant_in("wrong", FAKE_WRONG);
    plant_in("hang", FAKE_HANG);
    options.kernels = fake_shim_kernels(SHIM_UP, &options.kernel_count);
    fake_driver_open(&options, &plain);
    if (fake_wish("launches", -1) >= 0)
        fake_driver_fail_launch(fake_wish("launches", 0),
                                (cuda_result)fake_wish("error", CUDA_LAUNCH_FAILED));
    *out = plain;
    out->cuDriverGetVersion = version;
    out->cuDeviceGetAttribute = attribute;
    if (fake_wish("devices", 1) == 0) out->cuInit = no_device;
    if (fake_wish("pinned", 1) == 0) out->cuMemHostAlloc = no_host_memory;
    if (fake_wish("ipc", 1) == 0) out->cuIpcOpenMemHandle = no_foreign_memory;
    if (fake_wish("context", 0)) out->cuDevicePrimaryCtxRetain = no_context;
    if (fake_wish("image", 0)) out->cuModuleLoadData = no_image;
    if (fake_wish("memops", 1) == 0) out->cuStreamWaitValue32 = no_wait;
    if (fake_wish("memops", 1) == 2) out->cuStreamWaitValue32 = wait_for_ever;
}

sifr_status fake_wishes_lt(cuda_lt *out, sifr_error *error) {
    const long long wish = getenv("SIFR_TEST_NO_CUBLASLT") ? 0 : fake_wish("cublaslt", 1);
    const fake_lt_trouble trouble = {.multiply = wish == 2 ? CUDA_LT_EXECUTION_FAILED : CUDA_LT_OK,
                                     .short_sums = wish == 3};
    if (wish == 0)
        return base_fail(error, SIFR_FAILED, "cuBLASLt (libcublasLt.so.13) was not found");
    fake_lt_open(&trouble, out);
    return SIFR_OK;
}
