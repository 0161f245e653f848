/* Values of codes of 4 bits. */
#ifndef CPU_DEQUANTISE_H
#define CPU_DEQUANTISE_H

#include "device/cpu/cpu.h"

sifr_status cpu_run_dequantise(device *dev, const device_call *call, sifr_error *error);

#endif
