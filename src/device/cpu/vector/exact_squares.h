/* The exact sum of squares of a vector, by all threads (base/exact_sum.h). */
#ifndef CPU_EXACT_SQUARES_H
#define CPU_EXACT_SQUARES_H

#include "device/device.h"

/* Leaves a settled sum, whatever the number of threads. */
sifr_status cpu_run_exact_squares(device *dev, const device_call *call, sifr_error *error);

#endif
