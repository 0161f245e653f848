/* What is wrong with the played GPU, by FAKE_GPU in the environment: "NAME=VALUE" and commas. For
 * rank r FAKE_GPU_r goes before it. The program on the played driver (tests/cli/on_fake_gpu.c) and
 * the test programs on it (fake_gpu.h, op_gpu.h) obey. A name that is not below ends the process:
 *
 * devices: how many there are; driver: the CUDA that it serves; capability: 75 is 7.5; memory:
 * bytes; context, image: the driver's error for making a context, and for taking the kernels;
 * pinned: 0 refuses host memory for copies; ipc: 0 opens no memory of other processes.
 * memops: 0 refuses cuStreamWaitValue32, 2 takes it and the wait never ends, as where the driver
 * puts the work that ends it behind it.
 * launches, error: after so many launches every call gives that error.
 * wrong, hang: a kernel by its name without sifr_, which does nothing, or never ends.
 * cublaslt: 0 has none, 2 fails at the first product, 3 leaves the last term of each sum out.
 * SIFR_TEST_NO_CUBLASLT in the environment is cublaslt=0.
 * nccl (of the program alone): 0 has none, else its version; nccl_init, nccl_fails: as in
 * fake_nccl.h. */
#ifndef FAKE_WISHES_H
#define FAKE_WISHES_H

#include "device/cuda/cuda_driver.h"
#include "device/cuda/cuda_lt.h"

/* The number that is wished for, or `without`. */
long long fake_wish(const char *name, long long without);

/* Opens the fake driver as wished, with the kernels over the shim; cuda_driver_start then takes
 * `out`. Ends the process with a line if there is no such wish. */
void fake_wishes_open(cuda_driver *out);

/* A played cuBLASLt as wished, or SIFR_FAILED. */
sifr_status fake_wishes_lt(cuda_lt *out, sifr_error *error) SIFR_MUST_CHECK;

#endif
