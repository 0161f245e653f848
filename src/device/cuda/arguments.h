/* The structs that all kernels take. They have no padding, since its bytes would be what memory
 * held before: members are ordered by size, and `reserved` ones are zero. */
#ifndef CUDA_ARGUMENTS_H
#define CUDA_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/exact_sum.h"
#include "device/device.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

#include "device/cuda/attention/attention_arguments.h"
#include "device/cuda/head/head_arguments.h"
#include "device/cuda/head/targets_arguments.h"
#include "device/cuda/product/column_sums_arguments.h"
#include "device/cuda/product/gemm_arguments.h"
#include "device/cuda/vector/clear_arguments.h"
#include "device/cuda/vector/dequantise_arguments.h"
#include "device/cuda/vector/elements_arguments.h"
#include "device/cuda/vector/embedding_arguments.h"
#include "device/cuda/vector/exact_squares_arguments.h"
#include "device/cuda/vector/folds_arguments.h"
#include "device/cuda/vector/magnitude_arguments.h"
#include "device/cuda/vector/moves_arguments.h"
#include "device/cuda/vector/norm_arguments.h"
#include "device/cuda/vector/optimizer_arguments.h"
#include "device/cuda/vector/parts_arguments.h"
#include "device/cuda/vector/rope_arguments.h"
#include "device/cuda/vector/tree_sum_arguments.h"

#pragma GCC diagnostic pop

#endif
