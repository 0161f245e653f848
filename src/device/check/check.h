/* Checks of the operands of calls, by kernel: shapes, types and attributes, the same for all
 * devices. SIFR_USAGE names the kernel and the operand. */
#ifndef DEVICE_CHECK_H
#define DEVICE_CHECK_H

#include "device/call.h"

/* Finds the kernel's check below. */
sifr_status device_check_call(const device_call *call, sifr_error *error) SIFR_MUST_CHECK;

/* The checks that kernels.def names; several kernels share one. */
#define DEVICE_KERNEL(NAME, name, check, ...)                                                      \
    sifr_status device_check_##check(const device_call *call, sifr_error *error) SIFR_MUST_CHECK;
#include "device/kernels.def"

#endif
