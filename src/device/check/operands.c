#include "device/check/operands.h"

sifr_status device_check(const device_call *call, const device_matrix *m, const char *operand,
                         int64_t rows, int64_t columns, base_dtype dtype, sifr_error *error) {
    const char *kernel = device_kernel_name(call->kernel);
    if (m->dtype != dtype)
        return base_fail(error, SIFR_USAGE, "%s: %s is %s, expected %s", kernel, operand,
                         base_dtype_name(m->dtype), base_dtype_name(dtype));
    if (m->rows != rows || m->columns != columns || m->stride < columns)
        return base_fail(error, SIFR_USAGE,
                         "%s: %s is %lld x %lld with stride %lld, expected %lld x %lld", kernel,
                         operand, (long long)m->rows, (long long)m->columns, (long long)m->stride,
                         (long long)rows, (long long)columns);
    return SIFR_OK;
}

sifr_status device_check_activations(const device_call *call, const device_matrix *m,
                                     const char *operand, sifr_error *error) {
    const char *kernel = device_kernel_name(call->kernel);
    if (m->dtype != BASE_FP32 && m->dtype != BASE_BF16 && m->dtype != BASE_FP16)
        return base_fail(error, SIFR_USAGE, "%s: %s is %s, expected fp32, bf16 or fp16", kernel,
                         operand, base_dtype_name(m->dtype));
    if (m->rows < 1 || m->columns < 1 || m->stride < m->columns)
        return base_fail(error, SIFR_USAGE, "%s: %s is %lld x %lld with stride %lld", kernel,
                         operand, (long long)m->rows, (long long)m->columns, (long long)m->stride);
    return SIFR_OK;
}

sifr_status device_check_split_words(const device_call *call, const device_words *words,
                                     int64_t rows, sifr_error *error) {
    if (words->all == 0) return SIFR_OK;
    int64_t block = device_words_block(words->all), end = words->first + words->count;
    bool ends = end % block == 0 || end == words->all;
    bool begins = words->first % block == 0 || words->count == 0;
    if (words->first >= 0 && words->count >= 0 && end <= words->all && begins && ends &&
        words->count <= rows)
        return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: words %lld to %lld of %lld, in %lld rows",
                     device_kernel_name(call->kernel), (long long)words->first, (long long)end,
                     (long long)words->all, (long long)rows);
}
