/* The host's side of the gradient of a table of words. */
#ifndef CUDA_EMBEDDING_H
#define CUDA_EMBEDDING_H

#include "device/cuda/cuda_launch.h"

sifr_status cuda_prepare_embedding_backward(device *dev, device_call *call, sifr_error *error);
sifr_status cuda_run_embedding_backward(device *dev, const device_call *call, sifr_error *error);

#endif
