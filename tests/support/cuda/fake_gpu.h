/* The device of tests that train on a GPU: one that a fake driver plays, or with SIFR_TEST_GPU=1 in
 * the environment this machine's first (make gpu-check). As in the program, SIFR_DEVICE_CHECK=1
 * finishes each kernel before the next, SIFR_DEVICE_WAITS=host lets the host wait for transfers,
 * and with SIFR_CUDA_PRODUCTS=own the products of cuBLASLt are sifr's own. FAKE_GPU says what is
 * wrong with the played one (fake_wishes.h). */
#ifndef FAKE_GPU_H
#define FAKE_GPU_H

#include <cmocka.h>

#include "device/cuda/cuda_device.h"

/* Setup and teardown of a group of tests: one GPU, a fake one with the kernels over the shim. */
int fake_gpu_start(void **state);
int fake_gpu_stop(void **state);

/* The first of these without a test: the driver that was started, or why there is none. */
sifr_status fake_gpu_begin(const cuda_driver **out, sifr_error *error) SIFR_MUST_CHECK;

bool fake_gpu_is_real(void);
bool fake_gpu_has_lt(void); /* or own products are asked for in its place; else says why not */

/* Fails the running test if a fake cuBLASLt computed nothing, though it was to. */
void fake_gpu_check_lt(void);

/* Opens it; of the second, cuBLASLt computes products: a fake one, too, or that of this machine. */
sifr_status fake_gpu_open(device **out, sifr_error *error);
sifr_status fake_gpu_open_lt(device **out, sifr_error *error);

/* With short chunks of tokens, of which a small micro batch has several. */
enum { FAKE_GPU_SHORT_CHUNK = 256 };
sifr_status fake_gpu_open_short(device **out, sifr_error *error);

/* Fails the running test if a device that was closed has left something behind, or none of its
 * kernels ran. Of a real GPU nothing is known. */
void fake_gpu_check_returned(void);

#endif
