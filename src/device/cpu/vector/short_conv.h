#ifndef CPU_SHORT_CONV_H
#define CPU_SHORT_CONV_H

#include "device/cpu/cpu.h"

sifr_status cpu_run_short_conv(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_short_conv_backward(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_short_conv_cached(device *dev, const device_call *call, sifr_error *error);

#endif
