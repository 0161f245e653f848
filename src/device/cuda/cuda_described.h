/* A GPU that need not be there, for plans. */
#ifndef CUDA_DESCRIBED_H
#define CUDA_DESCRIBED_H

#include "device/device.h"

/* What a description says of it. */
typedef struct cuda_description {
    int32_t compute_capability; /* 90 for 9.0; 0: not known */
    int32_t multiprocessors;    /* 0: not known */
} cuda_description;

/* A device of `threads` threads of the host (at least 1). device_prepare works, and is what the
 * GPU's own would be. All that needs memory, or runs, is SIFR_USAGE. */
sifr_status device_open_described(int threads, const cuda_description *description, device **out,
                                  sifr_error *error) SIFR_MUST_CHECK;

#endif
