/* DEVICE_DELTA, its backward and DEVICE_DELTA_CACHED on the CPU. A tile of work is a key head of a
 * sequence with its value heads, so each sum stays on one thread. */
#ifndef CPU_DELTA_H
#define CPU_DELTA_H

#include "device/cpu/cpu.h"

sifr_status cpu_prepare_delta(device *dev, device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status cpu_run_delta(device *dev, const device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status cpu_prepare_delta_cached(device *dev, device_call *call,
                                     sifr_error *error) SIFR_MUST_CHECK;
sifr_status cpu_run_delta_cached(device *dev, const device_call *call,
                                 sifr_error *error) SIFR_MUST_CHECK;

#endif
