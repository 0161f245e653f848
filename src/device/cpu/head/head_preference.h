/* DEVICE_HEAD_PREFERENCE and its backward on the CPU: the log-probabilities of all labels, as of
 * DEVICE_HEAD_LOSS; from their sums the loss of each pair and a weight for each row; then the
 * gradients of the cross entropies, times those weights. */
#ifndef CPU_HEAD_PREFERENCE_H
#define CPU_HEAD_PREFERENCE_H

#include "device/cpu/cpu.h"

sifr_status cpu_run_head_preference(device *dev, const device_call *call,
                                    sifr_error *error) SIFR_MUST_CHECK;

#endif
