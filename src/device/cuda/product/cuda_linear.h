/* DEVICE_LINEAR and its backward on a CUDA device.
 *
 * A row of y or of dx does not depend on other rows. Weight gradients add chunks of
 * device_token_chunk tokens in order, and so do gradients of biases. */
#ifndef CUDA_LINEAR_H
#define CUDA_LINEAR_H

#include "device/device.h"

sifr_status cuda_prepare_linear(device *dev, device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status cuda_run_linear(device *dev, const device_call *call,
                            sifr_error *error) SIFR_MUST_CHECK;
sifr_status cuda_prepare_linear_backward(device *dev, device_call *call,
                                         sifr_error *error) SIFR_MUST_CHECK;
sifr_status cuda_run_linear_backward(device *dev, const device_call *call,
                                     sifr_error *error) SIFR_MUST_CHECK;

#endif
