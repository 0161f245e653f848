/* Which GPU a rank computes on. */
#ifndef CUDA_CHOICE_H
#define CUDA_CHOICE_H

#include "device/cuda/cuda_driver.h"

/* The kernels need compute capability 8.0 (cmake/cuda.cmake). Later GPUs without code of their own
 * take that of an earlier one of their generation, or what the driver makes of PTX. */
#define CUDA_LEAST_CAPABILITY 8

typedef struct cuda_choice {
    cuda_driver driver; /* started */
    cuda_gpu gpu;
    int index, count; /* of the GPUs that this process may use */
} cuda_choice;

/* The GPU of rank `rank` of a host: that number modulo the number of GPUs that
 * CUDA_VISIBLE_DEVICES leaves. Takes nothing of it. SIFR_FAILED says what keeps the rank from
 * using one: no kernels in the program, no driver, one that is too old, no GPU, or none with a
 * kernel. */
sifr_status cuda_choose(int32_t rank, cuda_choice *out, sifr_error *error) SIFR_MUST_CHECK;

/* The second half of that, with a driver in `out` that the caller started. */
sifr_status cuda_choose_gpu(int32_t rank, cuda_choice *out, sifr_error *error) SIFR_MUST_CHECK;

/* Whether the driver has a GPU for this process, also where the program has no kernels for it. */
bool cuda_gpu_is_there(void);

#endif
