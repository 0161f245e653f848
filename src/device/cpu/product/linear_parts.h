/* Parts of a linear layer's backward pass that its implementations share. */
#ifndef CPU_LINEAR_PARTS_H
#define CPU_LINEAR_PARTS_H

#include "device/cpu/cpu.h"
#include "device/cpu/product/kernels_matrix.h"

/* Columns of an operand are transposed in so many tasks, each with so many bytes of scratch. */
int64_t cpu_transpose_parts(int64_t columns);
int64_t cpu_transpose_scratch(int64_t rows);

/* Part `part` of the columns of `from`, dense, into its place in `to`, which holds all of them;
 * `widen`: 16 bits become fp32, by way of scratch. */
void cpu_transpose_part(const cpu_matrix_kernels *kernels, const device_matrix *from, int64_t part,
                        bool widen, void *scratch, char *to);

/* dw1 of DEVICE_LINEAR_BACKWARD, if it is wanted: column sums of dy, by chunks of tokens. */
void cpu_run_bias_gradient(device *dev, const device_call *call);

#endif
