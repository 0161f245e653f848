#include "device/check/check.h"

/* The check of each kernel. */
static sifr_status (*const checks[DEVICE_KERNELS])(const device_call *, sifr_error *) = {
#define DEVICE_KERNEL(NAME, name, check, ...) [DEVICE_##NAME] = device_check_##check,
#include "device/kernels.def"
};

sifr_status device_check_call(const device_call *call, sifr_error *error) {
    return checks[call->kernel](call, error);
}
