/* Runs a kernel over the shim, from C. */
#ifndef SUPPORT_CUDA_SHIM_RUN_H
#define SUPPORT_CUDA_SHIM_RUN_H

#include "device/cuda/cuda_launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Order of a block's threads and of the blocks: SHIM_UP, SHIM_DOWN, or a seed above them. */
enum { SHIM_UP, SHIM_DOWN };

/* Runs a launch to its end, on this thread. Aborts, with a message, if threads wait at a barrier
 * that others of the block do not reach, and if a block has more threads than its kernel may have,
 * or more shared memory than each GPU has. */
void shim_run(const cuda_launch *launch, int order);

/* A device whose kernels are those of GPUs, run over the shim. Its memory is the host's. */
sifr_status device_open_shim(int order, device **out, sifr_error *error) SIFR_MUST_CHECK;

/* With another token chunk, a multiple of 256: small shapes then have several. */
sifr_status device_open_shim_chunk(int order, int64_t token_chunk, device **out,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* ThreadSanitizer does not understand fibres. */
static inline bool shim_skipped(void) {
#if defined(__SANITIZE_THREAD__)
    return true;
#else
    return false;
#endif
}

#ifdef __cplusplus
}
#endif

#endif
