/* Products of one or a few rows, bound by reading the weights. */
#ifndef CPU_PRODUCT_FEW_H
#define CPU_PRODUCT_FEW_H

#include "device/cpu/cpu.h"

/* DEVICE_LINEAR with at most CPU_FEW_ROWS rows, where it is faster. The bits of a row depend
 * neither on the other rows nor on the threads. */
bool cpu_takes_few_rows(const device *dev, const device_call *call);
sifr_status cpu_prepare_few_rows(device *dev, device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status cpu_run_few_rows(device *dev, const device_call *call,
                             sifr_error *error) SIFR_MUST_CHECK;

#endif
