/* Attention of fp32 values. */
#include "device/cuda/attention/attention_plain.h"

#define SHAPE(width) plane_shape<width, ATTENTION_FP32_TILE(width)>
#define FP32(width)                                                                                \
    KERNEL(attention_forward_fp32_##width, attention_arguments, ATTENTION_FP32_THREADS) {          \
        plain_forward<fp32, SHAPE(width), false>(a);                                               \
    }                                                                                              \
    KERNEL(attention_backward_keys_fp32_##width, attention_arguments, ATTENTION_FP32_THREADS) {    \
        plain_backward<fp32, SHAPE(width), true, false>(a);                                        \
    }                                                                                              \
    KERNEL(attention_backward_queries_fp32_##width, attention_arguments, ATTENTION_FP32_THREADS) { \
        plain_backward<fp32, SHAPE(width), false, false>(a);                                       \
    }
FP32(128)
FP32(256)
