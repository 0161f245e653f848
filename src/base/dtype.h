/* Types of elements in kernels, in transfers between ranks, and in files. */
#ifndef BASE_DTYPE_H
#define BASE_DTYPE_H

#include <stdint.h>

/* The types of safetensors. Types of one size are in the order in which safetensors files sort
 * tensors. */
typedef enum base_dtype {
    BASE_NONE, /* absent */
    BASE_FP32,
    BASE_BF16,
    BASE_FP16,
    BASE_UINT64,
    BASE_INT64,
    BASE_FP64,
    BASE_COMPLEX64,
    BASE_UINT32,
    BASE_INT32,
    BASE_UINT16,
    BASE_INT16,
    BASE_FP8_E8M0,
    BASE_FP8_E4M3,
    BASE_FP8_E5M2,
    BASE_FP8_E4M3FNUZ,
    BASE_FP8_E5M2FNUZ,
    BASE_INT8,
    BASE_UINT8,
    BASE_BOOL,
    BASE_FP6_E3M2,
    BASE_FP6_E2M3,
    BASE_FP4,
    BASE_DTYPES
} base_dtype;

int base_dtype_bits(base_dtype dtype);         /* of one element: 4 to 64; 0 for BASE_NONE */
int64_t base_dtype_bytes(base_dtype dtype);    /* rounded down to whole bytes */
const char *base_dtype_name(base_dtype dtype); /* "fp32", "bf16", "int32" ... */

#endif
