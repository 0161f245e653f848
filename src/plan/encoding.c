#include "plan/encoding.h"

#include "base/assert.h"
#include "base/block4.h"
#include "base/block8.h"

static const plan_encoding encodings[PLAN_CODES] = {
    [PLAN_CODE_BYTES] = {"bytes", BASE_NONE, DEVICE_KERNELS, DEVICE_KERNELS, 1, 1},
    [PLAN_CODE_FP32] = {"fp32", BASE_FP32, DEVICE_KERNELS, DEVICE_KERNELS, 1, 4},
    [PLAN_CODE_BF16] = {"bf16", BASE_BF16, DEVICE_CONVERT, DEVICE_KERNELS, 1, 2},
    [PLAN_CODE_FP16] = {"fp16", BASE_FP16, DEVICE_CONVERT, DEVICE_KERNELS, 1, 2},
    [PLAN_CODE_NF4] = {"nf4", BASE_NONE, DEVICE_KERNELS, DEVICE_DEQUANTISE, BASE_NF4_RECORD,
                       BASE_NF4_PLAIN},
    [PLAN_CODE_NF4_DOUBLED] = {"nf4 double", BASE_NONE, DEVICE_KERNELS, DEVICE_DEQUANTISE,
                               BASE_NF4_RECORD, BASE_NF4_DOUBLED},
    [PLAN_CODE_INT8] = {"int8", BASE_NONE, DEVICE_KERNELS, DEVICE_DECODE_BLOCKS8, BASE_BLOCK8,
                        BASE_BLOCK8_BYTES},
    [PLAN_CODE_BLOCKS8] = {"8 bit blocks", BASE_NONE, DEVICE_ENCODE_BLOCKS8, DEVICE_DECODE_BLOCKS8,
                           BASE_BLOCK8, BASE_BLOCK8_BYTES},
    [PLAN_CODE_BLOCKS4] = {"4 bit blocks", BASE_NONE, DEVICE_ENCODE_BLOCKS4, DEVICE_SUM_BLOCKS4,
                           BASE_BLOCK4, BASE_BLOCK4_BYTES}};

const plan_encoding *plan_encoding_of(plan_code code) {
    base_assert((int)code >= 0 && code < PLAN_CODES);
    return &encodings[code];
}

plan_code plan_code_of(base_dtype type) {
    for (int code = PLAN_CODE_FP32; code <= PLAN_CODE_FP16; code++)
        if (encodings[code].type == type) return (plan_code)code;
    return PLAN_CODE_BYTES;
}

plan_code plan_code_of_weights(model_coding coding, base_dtype type) {
    if (!coding) return plan_code_of(type);
    if (coding == MODEL_INT8) return PLAN_CODE_INT8;
    return coding == MODEL_NF4 ? PLAN_CODE_NF4 : PLAN_CODE_NF4_DOUBLED;
}

int64_t plan_encoded_bytes(plan_code code, int64_t values) {
    const plan_encoding *encoding = plan_encoding_of(code);
    base_assert(values >= 0 && values % encoding->values == 0);
    return values / encoding->values * encoding->bytes;
}

int64_t plan_encoded_values(plan_code code, int64_t bytes) {
    const plan_encoding *encoding = plan_encoding_of(code);
    base_assert(bytes >= 0 && bytes % encoding->bytes == 0);
    return bytes / encoding->bytes * encoding->values;
}
