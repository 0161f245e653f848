/* DEVICE_LINEAR and its backward with attributes.linear.pieces: with the same bits whatever number
 * of tensor ranks divides the layer (product_exact.h); and the end of sums over tensor ranks. */
#ifndef CPU_LINEAR_EXACT_H
#define CPU_LINEAR_EXACT_H

#include "device/cpu/cpu.h"

bool cpu_takes_exact(const device *dev, const device_call *call);
sifr_status cpu_prepare_exact(device *dev, device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status cpu_run_exact(device *dev, const device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status cpu_prepare_exact_backward(device *dev, device_call *call,
                                       sifr_error *error) SIFR_MUST_CHECK;
sifr_status cpu_run_exact_backward(device *dev, const device_call *call,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* DEVICE_FINISH_SUM and DEVICE_FINISH_INTO */
sifr_status cpu_run_finish(device *dev, const device_call *call, sifr_error *error) SIFR_MUST_CHECK;

#endif
