/* Kernels with a fault that can be left out: what the shim has to find. */
#ifndef SUPPORT_CUDA_PLANTED_H
#define SUPPORT_CUDA_PLANTED_H

#ifdef __cplusplus
extern "C" {
#endif

enum { PLANTED_THREADS = 96 }; /* of the block; floats in and out */

typedef enum planted_fault {
    PLANTED_EARLY_READ,  /* of what another thread writes, without a barrier between */
    PLANTED_EARLY_WRITE, /* over what another thread still reads */
    PLANTED_EARLY_COPY,  /* read out of shared memory before it was waited for */
    PLANTED_FAULTS
} planted_fault;

/* Each kernel turns `in` by one or two places, or copies it, if it has no fault. */
void planted_run(planted_fault fault, int faulty, int order, const float *in, float *out);
int planted_turn(planted_fault fault);

#ifdef __cplusplus
}
#endif

#endif
