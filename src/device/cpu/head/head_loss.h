/* DEVICE_HEAD_LOSS and its backward on the CPU.
 *
 * Rows with a label are gathered into chunks of CPU_LOSS_ROWS, the last one padded with zeros. The
 * logits of a chunk are in scratch in fp32, in dense blocks of words. The first pass computes them,
 * with the largest logit and the sum of exponentials of each row and block. The second turns a
 * block into gradients and adds its part of dw, chunk after chunk. The third adds up dx over the
 * blocks. If all rows are one tile of dx, a block's part of dx is computed with its gradients, so
 * that all threads have work. Then w is widened a block at a time and not packed, since packing
 * would take longer than its products. */
#ifndef CPU_HEAD_LOSS_H
#define CPU_HEAD_LOSS_H

#include "device/cpu/cpu.h"

#define CPU_LOSS_ROWS 1024

/* Of DEVICE_HEAD_LOSS, DEVICE_HEAD_PREFERENCE, DEVICE_HEAD_DISTIL, DEVICE_OWN_LOSS and their
 * backward calls. */
sifr_status cpu_prepare_head_loss(device *dev, device_call *call,
                                  sifr_error *error) SIFR_MUST_CHECK;
sifr_status cpu_run_head_loss(device *dev, const device_call *call,
                              sifr_error *error) SIFR_MUST_CHECK;

/* A backward call in two parts: the losses of all rows into y (rows x 1), then, once the weights
 * are there, the gradients of the losses times those. */
typedef enum cpu_head_part { CPU_HEAD_ALL, CPU_HEAD_LOSSES, CPU_HEAD_WEIGHTED } cpu_head_part;
sifr_status cpu_run_head_part(device *dev, const device_call *call, cpu_head_part part,
                              sifr_error *error) SIFR_MUST_CHECK;
float *cpu_head_weights(const device_call *call); /* of a prepared call, in scratch: one a row */

#endif
