#include "base/dtype.h"

#include "base/assert.h"

static const struct {
    const char *name;
    int bits;
} dtypes[BASE_DTYPES] = {
    [BASE_NONE] = {"none", 0},
    [BASE_FP32] = {"fp32", 32},
    [BASE_BF16] = {"bf16", 16},
    [BASE_FP16] = {"fp16", 16},
    [BASE_UINT64] = {"uint64", 64},
    [BASE_INT64] = {"int64", 64},
    [BASE_FP64] = {"fp64", 64},
    [BASE_COMPLEX64] = {"complex64", 64},
    [BASE_UINT32] = {"uint32", 32},
    [BASE_INT32] = {"int32", 32},
    [BASE_UINT16] = {"uint16", 16},
    [BASE_INT16] = {"int16", 16},
    [BASE_FP8_E8M0] = {"fp8_e8m0", 8},
    [BASE_FP8_E4M3] = {"fp8_e4m3", 8},
    [BASE_FP8_E5M2] = {"fp8_e5m2", 8},
    [BASE_FP8_E4M3FNUZ] = {"fp8_e4m3fnuz", 8},
    [BASE_FP8_E5M2FNUZ] = {"fp8_e5m2fnuz", 8},
    [BASE_INT8] = {"int8", 8},
    [BASE_UINT8] = {"uint8", 8},
    [BASE_BOOL] = {"bool", 8},
    [BASE_FP6_E3M2] = {"fp6_e3m2", 6},
    [BASE_FP6_E2M3] = {"fp6_e2m3", 6},
    [BASE_FP4] = {"fp4", 4},
};

int base_dtype_bits(base_dtype dtype) {
    base_assert((int)dtype >= 0 && dtype < BASE_DTYPES);
    return dtypes[dtype].bits;
}

int64_t base_dtype_bytes(base_dtype dtype) {
    base_assert((int)dtype >= 0 && dtype < BASE_DTYPES);
    return dtypes[dtype].bits / 8;
}

const char *base_dtype_name(base_dtype dtype) {
    base_assert((int)dtype >= 0 && dtype < BASE_DTYPES);
    return dtypes[dtype].name;
}
