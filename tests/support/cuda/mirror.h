/* Operands in memory of the host for a device that cannot reach it: a call's operands are copied
 * into one block of device memory, with guards around each, and copied back after it. Addresses
 * keep their place within 256 bytes, operands that overlap stay one. */
#ifndef SUPPORT_CUDA_MIRROR_H
#define SUPPORT_CUDA_MIRROR_H

#include "device/device.h"

/* Opens a device over `inner`, which it borrows. Its memory is the host's. A write beside the
 * operands of a call is SIFR_FAILED, as is one into the guards. */
sifr_status device_open_mirror(device *inner, device **out, sifr_error *error) SIFR_MUST_CHECK;

/* For launches without a call (cuda_launch_kernel): from now on `bytes` at `data` are operands,
 * until mirror_forget. Does nothing on a device that is no mirror. `data` NULL is allowed. */
void mirror_show(device *dev, const void *data, int64_t bytes);
void mirror_show_matrix(device *dev, const device_matrix *m);
void mirror_forget(device *dev);

#endif
