/* Magnitudes of a product's columns. */
#ifndef CPU_MAGNITUDE_H
#define CPU_MAGNITUDE_H

#include "device/cpu/cpu.h"

sifr_status cpu_run_magnitude(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_magnitude_backward(device *dev, const device_call *call, sifr_error *error);

#endif
