/* LAMB on the CPU: what its two kernels do beside the elements. */
#ifndef CPU_LAMB_H
#define CPU_LAMB_H

#include "device/device.h"

/* Leaves settled sums, whatever the number of threads. */
sifr_status cpu_run_lamb_begin(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_lamb(device *dev, const device_call *call, sifr_error *error);

#endif
