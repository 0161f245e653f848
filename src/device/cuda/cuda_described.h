/* A GPU that need not be there, for plans. */
#ifndef CUDA_DESCRIBED_H
#define CUDA_DESCRIBED_H

#include "device/kinds.h"

/* device_open_described of CUDA. */
sifr_status cuda_open_described(int threads, const device_description *description, device **out,
                                sifr_error *error) SIFR_MUST_CHECK;

#endif
