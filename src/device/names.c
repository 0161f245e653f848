#include "device/call.h"

base_dtype device_dtype_of(sifr_precision precision) {
    static const base_dtype dtypes[] = {
        [SIFR_FP32] = BASE_FP32, [SIFR_BF16] = BASE_BF16, [SIFR_FP16] = BASE_FP16};
    return dtypes[precision];
}

const char *device_kernel_name(device_kernel kernel) {
    static const char *const names[DEVICE_KERNELS] = {
#define DEVICE_KERNEL(NAME, name, ...) [DEVICE_##NAME] = #name,
#include "device/kernels.def"
    };
    return names[kernel];
}

device_access device_kernel_access(device_kernel kernel) {
    static const device_access access_of[DEVICE_KERNELS] = {
#define DEVICE_KERNEL(NAME, name, check, access, ...) [DEVICE_##NAME] = DEVICE_ACCESS_##access,
#include "device/kernels.def"
    };
    return access_of[kernel];
}

/* DEVICE_UPDATE_NUMBER counts on it. */
#define DEVICE_UPDATE(NAME, ...)                                                                   \
    _Static_assert(DEVICE_UPDATE_NUMBER(DEVICE_##NAME) == (int)DEVICE_UPDATE_##NAME,               \
                   "updates are neighbours");
#include "device/kernels.def"

bool device_is_update(device_kernel kernel) {
    int number = DEVICE_UPDATE_NUMBER(kernel);
    return number >= 0 && number < DEVICE_UPDATES;
}

int device_update_states(device_kernel kernel) {
    static const int states[DEVICE_UPDATES] = {
#define DEVICE_UPDATE(NAME, name, states, ...) [DEVICE_UPDATE_##NAME] = states,
#include "device/kernels.def"
    };
    return states[DEVICE_UPDATE_NUMBER(kernel)];
}

unsigned device_update_uses(device_kernel kernel) {
    static const unsigned uses_of[DEVICE_UPDATES] = {
#define DEVICE_UPDATE(NAME, name, states, uses, ...) [DEVICE_UPDATE_##NAME] = uses,
#include "device/kernels.def"
    };
    return uses_of[DEVICE_UPDATE_NUMBER(kernel)];
}

int device_call_states(const device_call *call) {
    return device_update_states(call->kernel) + call->attributes.update.averages;
}
