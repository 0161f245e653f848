/* The order in which partial sums of ranks are added, and the sum itself on the calling thread: a
 * tree made by halving. A range of even length is the sum of its halves, one of odd length is added
 * left to right. */
#ifndef DEVICE_TREE_SUM_H
#define DEVICE_TREE_SUM_H

#include <stdint.h>

#include "base/dtype.h"

/* out[i] = sum over r of rows[r][i], 0 <= i < elements, in FP32. `out` may be one of the rows. No
 * other row is written, so other processes may read the rows meanwhile. */
void device_tree_sum(const float *const *rows, int32_t count, int64_t elements, float *out);

/* The same for rows in another type, which are widened first. `sum` is the type of `out`: FP32, or
 * `type`, in which case each sum of the tree is rounded to it, so that sums within a rank and sums
 * across ranks form one tree. */
void device_tree_sum_typed(base_dtype type, base_dtype sum, const void *const *rows, int32_t count,
                           int64_t elements, void *out);

/* The same with an `out` of `type` and sums in FP32, which are rounded once, at the end. */
void device_tree_sum_once(base_dtype type, const void *const *rows, int32_t count, int64_t elements,
                          void *out);

#endif
