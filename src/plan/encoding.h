/* How values are coded while ranks exchange them. A collective of the list names one, so it carries
 * any buffer: slices of weights or of their gradients, and values of the forward and backward pass
 * alike. */
#ifndef PLAN_ENCODING_H
#define PLAN_ENCODING_H

#include <stdint.h>

#include "base/dtype.h"
#include "device/call.h"
#include "model/coding.h"

typedef enum plan_code {
    PLAN_CODE_BYTES, /* that nothing adds up: moved as they are */
    PLAN_CODE_FP32,
    PLAN_CODE_BF16,
    PLAN_CODE_FP16,
    PLAN_CODE_NF4,
    PLAN_CODE_NF4_DOUBLED,
    PLAN_CODE_INT8,    /* base/block8.h: of frozen weights, which are held so */
    PLAN_CODE_BLOCKS8, /* base/block8.h: of weights, on their way */
    PLAN_CODE_BLOCKS4, /* base/block4.h: of gradients, on their way */
    PLAN_CODES
} plan_code;

typedef struct plan_encoding {
    const char *name;
    base_dtype type;       /* of its elements, which ranks can add up; BASE_NONE: they cannot */
    device_kernel encode;  /* makes it of fp32 values; DEVICE_KERNELS: nothing does in a step */
    device_kernel decode;  /* makes values of it, or sums of them; DEVICE_KERNELS: kernels and sums
                              read it as it is */
    int64_t values, bytes; /* so many values take so many bytes */
} plan_encoding;

const plan_encoding *plan_encoding_of(plan_code code);

/* Of values of a type, and of a segment's parameters. PLAN_CODE_BYTES for types that ranks do not
 * add up. */
plan_code plan_code_of(base_dtype type);
plan_code plan_code_of_weights(model_coding coding, base_dtype type);

/* Bytes of whole pieces of `values` values. */
int64_t plan_encoded_bytes(plan_code code, int64_t values);
/* Values in so many bytes. */
int64_t plan_encoded_values(plan_code code, int64_t bytes);

#endif
