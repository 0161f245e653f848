/* The structs that all kernels take. */
#ifndef CUDA_ARGUMENTS_H
#define CUDA_ARGUMENTS_H

#include "device/cuda/vector/clear_arguments.h"

#endif
