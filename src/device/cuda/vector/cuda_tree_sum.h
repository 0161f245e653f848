/* The sum of slices of several ranks on a GPU, in the order and with the bits of comm/tree.h. */
#ifndef CUDA_TREE_SUM_H
#define CUDA_TREE_SUM_H

#include "base/dtype.h"
#include "device/cuda/cuda_launch.h"
#include "device/cuda/vector/tree_sum_arguments.h"

/* Fills in the launch that writes the sum of `count` slices of `elements` elements of `type` to
 * `out`; the launch refers to *arguments. `sum` is the type of `out`: FP32, or `type`, and then
 * each sum of the tree is rounded to it. `out` may be one of the slices; no other one is written.
 * All are device memory, of this device or mapped from another. SIFR_USAGE for more slices than
 * TREE_SLICES. */
sifr_status cuda_tree_sum(base_dtype type, base_dtype sum, const void *const *slices, int32_t count,
                          int64_t elements, void *out, tree_sum_arguments *arguments,
                          cuda_launch *launch, sifr_error *error) SIFR_MUST_CHECK;

#endif
