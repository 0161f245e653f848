#ifndef CPU_XIELU_H
#define CPU_XIELU_H

#include "device/cpu/cpu.h"

sifr_status cpu_prepare_xielu_backward(device *dev, device_call *call, sifr_error *error);
sifr_status cpu_run_xielu(device *dev, const device_call *call, sifr_error *error);
sifr_status cpu_run_xielu_backward(device *dev, const device_call *call, sifr_error *error);

#endif
