/* The fake's state, contexts, modules and launches. */
#include "support/cuda/fake_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cuda/fake_parts.h"
#include "support/cuda/least_gpu.h"

fake_state fake = {.lock = PTHREAD_MUTEX_INITIALIZER};
static _Thread_local cuda_context current;

cuda_context fake_current(void) {
    return current && current->retained > 0 ? current : NULL;
}

int fake_device(void) {
    return (int)(current - fake.contexts);
}

void *fake_take(size_t bytes) {
    void *block = calloc(1, bytes);
    if (!block) {
        fputs("fake driver: out of memory\n", stderr);
        abort();
    }
    return block;
}

cuda_result fake_enter(bool context) {
    pthread_mutex_lock(&fake.lock);
    cuda_result result = CUDA_OK;
    if (!fake.open || !fake.started)
        result = CUDA_NOT_INITIALIZED;
    else if (context && !fake_current())
        result = CUDA_INVALID_CONTEXT;
    else if (context)
        result = atomic_load_explicit(&fake.lost, memory_order_acquire);
    return result == CUDA_OK ? CUDA_OK : fake_leave(result);
}

cuda_result fake_leave(cuda_result result) {
    pthread_mutex_unlock(&fake.lock);
    return result;
}

static cuda_result init(unsigned flags) {
    pthread_mutex_lock(&fake.lock);
    fake.started = fake.open && flags == 0;
    return fake_leave(fake.started ? CUDA_OK : CUDA_INVALID_VALUE);
}

static cuda_result driver_version(int *version) {
    *version = 13000;
    return CUDA_OK;
}

static const struct {
    cuda_result result;
    const char *name, *text;
} errors[] = {
    {CUDA_OK, "CUDA_SUCCESS", "no error"},
    {CUDA_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {CUDA_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CUDA_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "stream was not capturing"},
    {CUDA_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};

static cuda_result error_name(cuda_result result, const char **name) {
    *name = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].result == result) *name = errors[i].name;
    return *name ? CUDA_OK : CUDA_INVALID_VALUE;
}

static cuda_result error_string(cuda_result result, const char **text) {
    *text = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].result == result) *text = errors[i].text;
    return *text ? CUDA_OK : CUDA_INVALID_VALUE;
}

static cuda_result device_count(int *count) {
    cuda_result result = fake_enter(false);
    if (result != CUDA_OK) return result;
    *count = fake.options.devices;
    return fake_leave(CUDA_OK);
}

/* Locked on CUDA_OK. */
static cuda_result enter_device(cuda_device_handle device) {
    cuda_result result = fake_enter(false);
    if (result != CUDA_OK) return result;
    return device >= 0 && device < fake.options.devices ? CUDA_OK : fake_leave(CUDA_INVALID_DEVICE);
}

static cuda_result device_get(cuda_device_handle *device, int ordinal) {
    cuda_result result = enter_device(ordinal);
    if (result != CUDA_OK) return result;
    *device = ordinal;
    return fake_leave(CUDA_OK);
}

static cuda_result device_name(char *name, int length, cuda_device_handle device) {
    cuda_result result = enter_device(device);
    if (result != CUDA_OK) return result;
    snprintf(name, (size_t)length, "Fake GPU");
    return fake_leave(CUDA_OK);
}

static cuda_result device_uuid(cuda_uuid *uuid, cuda_device_handle device) {
    cuda_result result = enter_device(device);
    if (result != CUDA_OK) return result;
    for (int i = 0; i < 16; i++) uuid->bytes[i] = (unsigned char)(0x10 * device + i);
    return fake_leave(CUDA_OK);
}

static cuda_result device_bus(char *id, int length, cuda_device_handle device) {
    cuda_result result = enter_device(device);
    if (result != CUDA_OK) return result;
    snprintf(id, (size_t)length, "0000:%02X:00.0", (unsigned)device + 1);
    return fake_leave(CUDA_OK);
}

static cuda_result device_memory_bytes(size_t *bytes, cuda_device_handle device) {
    cuda_result result = enter_device(device);
    if (result != CUDA_OK) return result;
    *bytes = fake.options.memory;
    return fake_leave(CUDA_OK);
}

static cuda_result device_attribute(int *value, unsigned attribute, cuda_device_handle device) {
    static const int h100[][2] = {{CUDA_DEVICE_CAPABILITY_MAJOR, 9},
                                  {CUDA_DEVICE_CAPABILITY_MINOR, 0},
                                  {CUDA_DEVICE_MULTIPROCESSORS, 132},
                                  {CUDA_DEVICE_COPY_ENGINES, 3},
                                  {CUDA_DEVICE_SHARED_BYTES, LEAST_GPU_SHARED}};
    cuda_result result = enter_device(device);
    if (result != CUDA_OK) return result;
    result = CUDA_INVALID_VALUE;
    for (size_t i = 0; i < sizeof h100 / sizeof *h100; i++)
        if (h100[i][0] == (int)attribute) {
            *value = h100[i][1];
            result = CUDA_OK;
        }
    return fake_leave(result);
}

static cuda_result context_retain(cuda_context *context, cuda_device_handle device) {
    cuda_result result = enter_device(device);
    if (result != CUDA_OK) return result;
    *context = &fake.contexts[device];
    fake.contexts[device].retained++;
    fake.counts.contexts++;
    return fake_leave(CUDA_OK);
}

static cuda_result context_release(cuda_device_handle device) {
    cuda_result result = enter_device(device);
    if (result != CUDA_OK) return result;
    if (fake.contexts[device].retained == 0) return fake_leave(CUDA_INVALID_CONTEXT);
    if (--fake.contexts[device].retained == 0) fake.held[device] = 0;
    fake.counts.contexts--;
    return fake_leave(CUDA_OK);
}

static cuda_result context_current(cuda_context context) {
    cuda_result result = fake_enter(false);
    if (result != CUDA_OK) return result;
    if (context && context->retained == 0) return fake_leave(CUDA_INVALID_CONTEXT);
    current = context;
    return fake_leave(CUDA_OK);
}

static cuda_result module_load(cuda_module *module, const void *image) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    if (!image) return fake_leave(CUDA_INVALID_VALUE);
    *module = fake_take(sizeof **module);
    (*module)->image = image;
    (*module)->next = fake.modules;
    fake.modules = *module;
    fake.counts.modules++;
    return fake_leave(CUDA_OK);
}

static void free_module(cuda_module module) {
    for (cuda_function f = module->functions, next; f; f = next) {
        next = f->next;
        free(f);
    }
    free(module);
}

static cuda_result module_unload(cuda_module module) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    for (cuda_module *at = &fake.modules; *at; at = &(*at)->next)
        if (*at == module) {
            *at = module->next;
            free_module(module);
            fake.counts.modules--;
            return fake_leave(CUDA_OK);
        }
    return fake_leave(CUDA_INVALID_HANDLE);
}

/* Whether an image names the function, or has all. */
static bool has_function(const char *image, const char *name) {
    const size_t length = strlen(name);
    if (strcmp(image, "fake") == 0) return true;
    for (const char *at = image; (at = strstr(at, name)); at += length)
        if ((at == image || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return true;
    return false;
}

static cuda_result module_function(cuda_function *function, cuda_module module, const char *name) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    fake.counts.lookups++;
    for (size_t i = 0; i < fake.options.kernel_count && has_function(module->image, name); i++)
        if (strcmp(fake.options.kernels[i].name, name) == 0) {
            cuda_function f = fake_take(sizeof *f);
            *f = (struct CUfunc_st){module->functions, &fake.options.kernels[i], 48 << 10};
            module->functions = f;
            *function = f;
            return fake_leave(CUDA_OK);
        }
    fake.counts.missed++;
    return fake_leave(CUDA_NOT_FOUND);
}

static cuda_result set_attribute(cuda_function function, unsigned attribute, int value) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    if (attribute != CUDA_FUNCTION_SHARED_BYTES || value < 0 || value > LEAST_GPU_SHARED)
        return fake_leave(CUDA_INVALID_VALUE);
    function->shared_bytes = (uint32_t)value;
    return fake_leave(CUDA_OK);
}

static cuda_result get_attribute(int *value, unsigned attribute, cuda_function function) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    switch (attribute) {
    case CUDA_FUNCTION_LOCAL_BYTES:
        *value = 0;
        break;
    case CUDA_FUNCTION_REGISTERS:
        *value = 32;
        break;
    case CUDA_FUNCTION_SHARED_BYTES:
        *value = (int)function->shared_bytes;
        break;
    default:
        return fake_leave(CUDA_INVALID_VALUE);
    }
    return fake_leave(CUDA_OK);
}

/* The limits of compute capability 9.0, and the kernel's own. */
static bool fits(const fake_launch *launch, const struct CUfunc_st *function) {
    const uint32_t *g = launch->grid, *b = launch->block;
    const uint64_t threads = (uint64_t)b[0] * b[1] * b[2];
    const uint32_t most = launch->kernel->threads ? launch->kernel->threads : 1024;
    return g[0] && g[1] && g[2] && threads && g[0] <= INT32_MAX && g[1] <= 65535 && g[2] <= 65535 &&
           b[0] <= 1024 && b[1] <= 1024 && b[2] <= 64 && threads <= most &&
           launch->shared_bytes <= function->shared_bytes;
}

static cuda_result launch_kernel(cuda_function function, unsigned grid_x, unsigned grid_y,
                                 unsigned grid_z, unsigned block_x, unsigned block_y,
                                 unsigned block_z, unsigned shared_bytes, cuda_stream stream,
                                 void **arguments, void **extra) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    fake_work work = {
        .kind = FAKE_KERNEL,
        .launch = {
            function->kernel, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes}};
    if (!stream || !arguments || !arguments[0] || extra || !fits(&work.launch, function))
        return fake_leave(CUDA_INVALID_VALUE);
    const size_t bytes = function->kernel->argument_bytes;
    work.arguments = fake_take(bytes ? bytes : 1);
    memcpy(work.arguments, arguments[0], bytes);
    fake_translate(work.arguments, bytes);
    fake.counts.launches++;
    if (fake.fail_after == 0) work.fails = fake.fail_with;
    if (fake.fail_after >= 0) fake.fail_after--;
    fake_submit(stream, &work);
    return fake_leave(CUDA_OK);
}

void fake_driver_open(const fake_driver_options *options, cuda_driver *out) {
    pthread_mutex_lock(&fake.lock);
    fake.options = *options;
    if (fake.options.devices == 0) fake.options.devices = 1;
    if (fake.options.devices > FAKE_DEVICES) fake.options.devices = FAKE_DEVICES;
    if (fake.options.memory == 0) fake.options.memory = (uint64_t)1 << 30;
    fake.open = true;
    fake.started = false;
    fake.fail_after = -1;
    fake.counts = (fake_driver_counts){0};
    memset(fake.contexts, 0, sizeof fake.contexts);
    memset(fake.held, 0, sizeof fake.held);
    atomic_store(&fake.lost, 0);
    atomic_store(&fake.closing, false);
    *out = (cuda_driver){
        .cuInit = init,
        .cuDriverGetVersion = driver_version,
        .cuGetErrorName = error_name,
        .cuGetErrorString = error_string,
        .cuDeviceGetCount = device_count,
        .cuDeviceGet = device_get,
        .cuDeviceGetName = device_name,
        .cuDeviceGetUuid = device_uuid,
        .cuDeviceGetPCIBusId = device_bus,
        .cuDeviceTotalMem = device_memory_bytes,
        .cuDeviceGetAttribute = device_attribute,
        .cuDevicePrimaryCtxRetain = context_retain,
        .cuDevicePrimaryCtxRelease = context_release,
        .cuCtxSetCurrent = context_current,
        .cuModuleLoadData = module_load,
        .cuModuleUnload = module_unload,
        .cuModuleGetFunction = module_function,
        .cuFuncSetAttribute = set_attribute,
        .cuFuncGetAttribute = get_attribute,
        .cuLaunchKernel = launch_kernel,
    };
    fake_fill_memory(out);
    fake_fill_streams(out);
    fake_fill_graphs(out);
    pthread_mutex_unlock(&fake.lock);
}

void fake_driver_close(void) {
    fake_free_streams();
    pthread_mutex_lock(&fake.lock);
    fake_free_memory();
    for (cuda_module m = fake.modules, next; m; m = next) {
        next = m->next;
        free_module(m);
    }
    fake.modules = NULL;
    fake.open = fake.started = false;
    pthread_mutex_unlock(&fake.lock);
}

fake_driver_counts fake_driver_count(void) {
    pthread_mutex_lock(&fake.lock);
    fake_driver_counts counts = fake.counts;
    pthread_mutex_unlock(&fake.lock);
    return counts;
}

void fake_driver_limit(uint64_t bytes) {
    pthread_mutex_lock(&fake.lock);
    fake.options.memory = bytes;
    pthread_mutex_unlock(&fake.lock);
}

void fake_driver_fail_launch(int64_t launches, cuda_result result) {
    pthread_mutex_lock(&fake.lock);
    fake.fail_after = launches;
    fake.fail_with = result;
    pthread_mutex_unlock(&fake.lock);
}
