/* Attention for the dispatch table. */
#ifndef CPU_ATTENTION_RUN_H
#define CPU_ATTENTION_RUN_H

#include "device/cpu/cpu.h"

sifr_status attention_prepare(device *dev, device_call *call, sifr_error *error);
sifr_status attention_run(device *dev, const device_call *call, sifr_error *error);

#endif
