/* The sum of ranks' parts, of all transports, which move bytes and add nothing: in the order of the
 * tree (device/tree_sum.h), in host memory or by a device's kernel, to the same bits. */
#ifndef COMM_REDUCE_H
#define COMM_REDUCE_H

#include "device/device.h"

/* In host memory, on the calling thread. */
void comm_reduce(const device_sum *sum);

/* The same, with sums in FP32 that are rounded to the type of the parts once, at the end. */
void comm_reduce_once(const device_sum *sum);

/* Begins it on DEVICE_EXCHANGE, in memory of `dev`; NULL: as comm_reduce. */
sifr_status comm_reduce_on(device *dev, const device_sum *sum, sifr_error *error) SIFR_MUST_CHECK;

#endif
