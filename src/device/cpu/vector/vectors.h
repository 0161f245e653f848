/* Run functions of the kernels other than matrix products. */
#ifndef CPU_VECTORS_H
#define CPU_VECTORS_H

#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"

sifr_status cpu_run_elementwise(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_rope(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_split_qkv(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_join(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_unfold(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_blocks8(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_blocks4(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_power(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_rows(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_norm(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_norm_backward(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_norm_sums(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_norm_fold(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_embedding(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_embedding_backward(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_update(device *dev, const device_call *call, sifr_error *error);

/* Sets the scratch of a norm's backward. */
sifr_status cpu_prepare_norm_backward(device *dev, device_call *call, sifr_error *error);

#endif
