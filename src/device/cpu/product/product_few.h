/* Products of one row, or of a few, which take as long as their weights take to arrive. */
#ifndef CPU_PRODUCT_FEW_H
#define CPU_PRODUCT_FEW_H

#include "device/cpu/cpu.h"

/* Bytes that the call below takes at call->scratch. */
int64_t cpu_product_few_scratch(const device_call *call);

/* y = x w[0]^T + w[1] of a LINEAR call, at most CPU_FEW_ROWS rows. The bits of a row depend neither
 * on the others nor on the threads. */
void cpu_product_few_run(device *dev, const device_call *call);

#endif
