/* The exact sum of squares of a vector, by all threads (base/exact_sum.h). */
#ifndef CPU_EXACT_SQUARES_H
#define CPU_EXACT_SQUARES_H

#include "base/exact_sum.h"
#include "device/device.h"

/* Adds the squares of one row x of FP32, BF16 or FP16 to *sum, and settles it. `sum` is settled, or
 * zeros. The result does not depend on the number of threads. */
void cpu_exact_squares(device *dev, const device_matrix *x, base_exact_sum *sum);

#endif
