/* The sum of slices of several ranks in the order of device/tree_sum.h: a range of slices of even
 * length is the sum of its halves, one of odd length is added left to right. So runs of an odd
 * length are added left to right, and their sums by a tree: run r ends as many levels of it as r
 * has ones at the end of its binary form. A thread takes a pack of all slices and keeps the open
 * levels. */
#include "device/cuda/vector/packs.h"
#include "device/cuda/vector/tree_sum_arguments.h"

/* Sums of 16-bit slices are rounded one by one if the result has 16 bits (device_tree_sum_typed).
 */
DEVICE void add_pack(float to[PACK], const float from[PACK], int type, int out_type) {
#pragma unroll
    for (int i = 0; i < PACK; i++) to[i] = from[i] + to[i];
    if (type != BASE_FP32 && out_type == type) widen_pack(narrow_pack(to, type), type, to);
}

template <int type, int out_type> DEVICE void tree_sum(const tree_sum_arguments &a) {
    int64_t at = ((int64_t)blockIdx.x * PACK_THREADS + threadIdx.x) * PACK, left = a.elements - at;
    int count = left < PACK ? (int)left : PACK, slice = 0;
    float sum[PACK], open[TREE_LEVELS][PACK] = {};
    if (left <= 0) return;
    for (int run = 0; run < 1 << a.levels; run++) {
        widen_pack(load_pack(a.slices[slice], at, type, count), type, sum);
        slice++;
        for (int i = 1; i < a.run; i++, slice++) {
            float other[PACK];
            widen_pack(load_pack(a.slices[slice], at, type, count), type, other);
            add_pack(sum, other, type, out_type);
        }
        bool ends = true;
#pragma unroll
        for (int level = 0; level < TREE_LEVELS; level++) {
            if (!ends) continue;
            if (run >> level & 1) {
                add_pack(sum, open[level], type, out_type);
            } else {
#pragma unroll
                for (int i = 0; i < PACK; i++) open[level][i] = sum[i];
                ends = false;
            }
        }
    }
    store_pack(a.out, at, out_type, count, narrow_pack(sum, out_type));
}

#define TREE_SUM(name, type, out)                                                                  \
    KERNEL(name, tree_sum_arguments, PACK_THREADS) {                                               \
        tree_sum<type, out>(a);                                                                    \
    }

TREE_SUM(tree_sum_fp32, BASE_FP32, BASE_FP32)
TREE_SUM(tree_sum_bf16, BASE_BF16, BASE_BF16)
TREE_SUM(tree_sum_fp16, BASE_FP16, BASE_FP16)
TREE_SUM(tree_sum_bf16_fp32, BASE_BF16, BASE_FP32)
TREE_SUM(tree_sum_fp16_fp32, BASE_FP16, BASE_FP32)
