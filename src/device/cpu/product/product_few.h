/* Products of one or a few rows, bound by reading the weights. */
#ifndef CPU_PRODUCT_FEW_H
#define CPU_PRODUCT_FEW_H

#include "device/cpu/cpu.h"

/* Bytes that cpu_product_few_run needs at call->scratch. */
int64_t cpu_product_few_scratch(const device_call *call);

/* y = x w[0]^T + w[1] of a LINEAR call with at most CPU_FEW_ROWS rows. The bits of a row depend
 * neither on the other rows nor on the threads. */
void cpu_product_few_run(device *dev, const device_call *call);

#endif
