/* DEVICE_LINEAR and its backward on the CPU: tiles of oneDNN products on the device's threads.
 *
 * Forward and input gradient: tiles of rows; in fp32 and with enough rows, against a packed weight
 * (product_packed.h). Weight gradient: chunks of DEVICE_CPU_CHUNK tokens in order. In each chunk
 * the operand whose columns become rows of dw is transposed once into scratch, and the other one is
 * packed; then tiles of rows of dw are added to. 16-bit operands that products do not accept (fp16;
 * bf16 without instructions for it) are widened on the way, and the products run in fp32. */
#ifndef CPU_LINEAR_H
#define CPU_LINEAR_H

#include "device/cpu/cpu.h"

sifr_status cpu_prepare_linear(device *dev, device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status cpu_run_linear(device *dev, const device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status cpu_prepare_linear_backward(device *dev, device_call *call,
                                        sifr_error *error) SIFR_MUST_CHECK;
sifr_status cpu_run_linear_backward(device *dev, const device_call *call,
                                    sifr_error *error) SIFR_MUST_CHECK;

#endif
