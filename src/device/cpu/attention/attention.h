/* DEVICE_ATTENTION, its backward and DEVICE_ATTENTION_CACHED on the CPU. A tile of work is a kv
 * head of a sequence with its query heads, so each sum stays on one thread. */
#ifndef CPU_ATTENTION_H
#define CPU_ATTENTION_H

#include "device/cpu/cpu.h"

sifr_status cpu_prepare_attention(device *dev, device_call *call,
                                  sifr_error *error) SIFR_MUST_CHECK;
sifr_status cpu_run_attention(device *dev, const device_call *call,
                              sifr_error *error) SIFR_MUST_CHECK;
sifr_status cpu_prepare_attention_cached(device *dev, device_call *call,
                                         sifr_error *error) SIFR_MUST_CHECK;
sifr_status cpu_run_attention_cached(device *dev, const device_call *call,
                                     sifr_error *error) SIFR_MUST_CHECK;

#endif
