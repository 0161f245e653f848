/* DEVICE_HEAD_LOGITS on the CPU: the product of DEVICE_LINEAR, then scale and cap. */
#ifndef CPU_HEAD_LOGITS_H
#define CPU_HEAD_LOGITS_H

#include "device/cpu/cpu.h"
#include "device/cpu/head/kernels_loss.h"

/* The shape of a call of DEVICE_HEAD_... */
cpu_logits_shape cpu_head_shape(const device_call *call);

sifr_status cpu_prepare_head_logits(device *dev, device_call *call,
                                    sifr_error *error) SIFR_MUST_CHECK;
sifr_status cpu_run_head_logits(device *dev, const device_call *call,
                                sifr_error *error) SIFR_MUST_CHECK;

#endif
