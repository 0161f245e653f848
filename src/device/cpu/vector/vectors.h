/* Run functions of the kernels other than matrix products. */
#ifndef CPU_VECTORS_H
#define CPU_VECTORS_H

#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"

sifr_status cpu_run_elementwise(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_rope(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_regroup(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_neighbours(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_rows(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_norm(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_norm_backward(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_embedding(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_embedding_backward(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_adam(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_square_sums(device *dev, const device_call *call, sifr_error *error);

/* Checks of operands: vectors_check.c. */
sifr_status cpu_prepare_embedding(device *dev, device_call *call, sifr_error *error);
sifr_status cpu_prepare_norm(device *dev, device_call *call, sifr_error *error);
sifr_status cpu_prepare_rope(device *dev, device_call *call, sifr_error *error);
sifr_status cpu_prepare_regroup(device *dev, device_call *call, sifr_error *error);
sifr_status cpu_prepare_neighbours(device *dev, device_call *call, sifr_error *error);
sifr_status cpu_prepare_rows(device *dev, device_call *call, sifr_error *error);
sifr_status cpu_prepare_elementwise(device *dev, device_call *call, sifr_error *error);
sifr_status cpu_prepare_square_sums(device *dev, device_call *call, sifr_error *error);
sifr_status cpu_prepare_adam(device *dev, device_call *call, sifr_error *error);

int64_t cpu_norm_scratch(int64_t rows, int64_t columns); /* bytes for a norm's backward */

#endif
