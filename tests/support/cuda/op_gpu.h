/* The device of op tests for the kernels of GPUs. Operands are in memory of the host. */
#ifndef SUPPORT_CUDA_OP_GPU_H
#define SUPPORT_CUDA_OP_GPU_H

#include "device/device.h"

typedef enum op_gpu {
    OP_GPU_SHIM, /* the kernels over the shim */
    OP_GPU_FAKE, /* a GPU that a fake driver plays, through copies */
    OP_GPU_REAL  /* this machine's first, likewise */
} op_gpu;

/* From the environment: with SIFR_TEST_GPU=1 the real one, with SIFR_TEST_GPU=fake the played one.
 * Sets of the CPU are not tested then. */
op_gpu op_gpu_kind(void);

/* Opens one of op_gpu_kind. `order`: of threads over the shim; a GPU has its own. */
sifr_status op_gpu_open(int order, device **out, sifr_error *error) SIFR_MUST_CHECK;

/* The same of a given kind. The GPU behind it stays open until the process ends. */
sifr_status op_gpu_open_kind(op_gpu kind, int order, device **out,
                             sifr_error *error) SIFR_MUST_CHECK;

#endif
