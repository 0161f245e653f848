/* DEVICE_HEAD_REGRESSION, DEVICE_HEAD_MULTILABEL and their backward on the CPU. Rows with a target
 * are listed and processed in chunks of CPU_LOSS_ROWS, whose gradients of logits are in scratch. */
#ifndef CPU_HEAD_TARGETS_H
#define CPU_HEAD_TARGETS_H

#include "device/cpu/cpu.h"

sifr_status cpu_prepare_head_targets(device *dev, device_call *call,
                                     sifr_error *error) SIFR_MUST_CHECK;
sifr_status cpu_run_head_targets(device *dev, const device_call *call,
                                 sifr_error *error) SIFR_MUST_CHECK;

#endif
