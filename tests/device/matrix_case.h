/* Operands of random numbers for the tests of matrix kernels, and what they hold. */
#ifndef TESTS_DEVICE_MATRIX_CASE_H
#define TESTS_DEVICE_MATRIX_CASE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "device/device.h"
#include "support/cuda/op_gpu.h"
#include "support/cuda/shim_run.h"
#include "support/thinned.h"

static inline float case_from_bf16(uint16_t value) {
    uint32_t bits = (uint32_t)value << 16;
    float out;
    memcpy(&out, &bits, 4);
    return out;
}

static inline uint16_t case_to_bf16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Of two, which ldexp takes long to multiply by. */
static inline double case_power(int exponent) {
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double out;
    memcpy(&out, &bits, 8);
    return out;
}

static inline double case_from_fp16(uint16_t value) {
    int exponent = value >> 10 & 31, fraction = value & 1023;
    double out = exponent == 31  ? (fraction ? NAN : INFINITY)
                 : exponent == 0 ? fraction * case_power(-24)
                                 : (1024 + fraction) * case_power(exponent - 25);
    return value >> 15 ? -out : out;
}

/* Of values below 65520 in size: to nearest even. */
static inline uint16_t case_to_fp16(double value) {
    int exponent;
    frexp(fabs(value), &exponent);
    if (exponent < -13 || value == 0) exponent = -13; /* subnormal: a multiple of 2^-24 */
    int bits = ((exponent + 13) << 10) + (int)nearbyint(fabs(value) * case_power(11 - exponent));
    return (uint16_t)((signbit(value) ? 0x8000 : 0) | bits);
}

static inline double case_get(const device_matrix *m, int64_t row, int64_t column) {
    int64_t at = row * m->stride + column;
    if (m->dtype == BASE_BF16) return case_from_bf16(((const uint16_t *)m->data)[at]);
    if (m->dtype == BASE_FP16) return case_from_fp16(((const uint16_t *)m->data)[at]);
    if (m->dtype == BASE_INT32) return ((const int32_t *)m->data)[at];
    return ((const float *)m->data)[at];
}

/* All of it, row by row; free() it. References read each value many times. */
static inline double *case_doubles(const device_matrix *m) {
    double *all = malloc((size_t)(m->rows * m->columns) * sizeof *all);
    if (!all) abort();
    for (int64_t r = 0; r < m->rows; r++)
        for (int64_t c = 0; c < m->columns; c++) all[r * m->columns + c] = case_get(m, r, c);
    return all;
}

static inline void case_set(const device_matrix *m, int64_t row, int64_t column, double value) {
    int64_t at = row * m->stride + column;
    if (m->dtype == BASE_BF16)
        ((uint16_t *)m->data)[at] = case_to_bf16((float)value);
    else if (m->dtype == BASE_FP16)
        ((uint16_t *)m->data)[at] = case_to_fp16(value);
    else if (m->dtype == BASE_INT32)
        ((int32_t *)m->data)[at] = (int32_t)value;
    else
        ((float *)m->data)[at] = (float)value;
}

/* Bytes that a matrix takes; a slice's gaps count. */
static inline size_t case_bytes(const device_matrix *m) {
    return (size_t)(m->rows * m->stride * base_dtype_bytes(m->dtype));
}

/* In [-scale, scale], a function of the seed; 64-byte aligned; free the data. */
static inline device_matrix case_matrix(int64_t rows, int64_t columns, base_dtype dtype,
                                        uint64_t seed, double scale) {
    device_matrix m = {NULL, rows, columns, columns, dtype};
    m.data = aligned_alloc(64, (case_bytes(&m) + 127) / 64 * 64);
    assert_non_null(m.data);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            base_random4 random = base_philox(seed, (uint64_t)(r * columns + c), 0);
            case_set(&m, r, c, scale * (2.0 * base_uniform(random.v[0]) - 1.0));
        }
    return m;
}

static inline device_matrix case_copy(const device_matrix *m) {
    device_matrix copy = *m;
    copy.data = aligned_alloc(64, (case_bytes(m) + 127) / 64 * 64);
    assert_non_null(copy.data);
    memcpy(copy.data, m->data, case_bytes(m));
    return copy;
}

/* Prepares and runs, with scratch of exactly the size asked for, full of bytes 0xff (NaN). */
static inline void case_run(device *dev, device_call *call) {
    sifr_error error = {0};
    if (device_prepare(dev, call, &error) != SIFR_OK) fail_msg("%s", error.message);
    size_t bytes = ((size_t)call->scratch_bytes + 63) / 64 * 64;
    call->scratch = aligned_alloc(64, bytes + 64);
    assert_non_null(call->scratch);
    memset(call->scratch, 0xff, bytes + 64);
    if (device_run(dev, call, &error) != SIFR_OK) fail_msg("%s", error.message);
    for (size_t i = 0; i < 64; i++) assert_int_equal(((uint8_t *)call->scratch)[bytes + i], 0xff);
    free(call->scratch);
    call->scratch = NULL;
}

/* As sets: the kernels of GPUs, on a device of op_gpu.h with its chunks of tokens, and over the
 * shim with short ones, of which small shapes have several. */
static const char *const case_cuda = "cuda";
static const char *const case_cuda_short = "cuda in short chunks";
enum { CASE_SHORT_CHUNK = 256 };

static inline bool case_is_gpu(const char *isa) {
    return isa && (strcmp(isa, case_cuda) == 0 || strcmp(isa, case_cuda_short) == 0);
}

/* The one in short chunks where there is one: GPUs besides the shim have their own chunks alone. */
static inline const char *case_cuda_shortest(void) {
    return op_gpu_kind() == OP_GPU_SHIM ? case_cuda_short : case_cuda;
}

/* NULL where this processor lacks the set, or a GPU is tested instead. For GPUs, `threads` chooses
 * an order of threads. */
static inline device *case_device(int threads, const char *isa) {
    device *dev = NULL;
    sifr_error error = {0};
    if (case_is_gpu(isa)) {
        bool whole = strcmp(isa, case_cuda) == 0;
        if (shim_skipped() || (!whole && op_gpu_kind() != OP_GPU_SHIM)) return NULL;
        sifr_status status =
            whole ? op_gpu_open(threads - 1, &dev, &error)
                  : device_open_shim_chunk(threads - 1, CASE_SHORT_CHUNK, &dev, &error);
        if (status != SIFR_OK) fail_msg("%s", error.message);
        return dev;
    }
    if (isa && (thinned_set(isa) || op_gpu_kind() != OP_GPU_SHIM)) return NULL;
    if (device_open_cpu(threads, isa, &dev, &error) != SIFR_OK) return NULL;
    return dev;
}

static const char *const case_isas[] = {"avx512_bf16", "avx512", "avx2", "plain"};
static const int case_threads[] = {1, 2, 3, 8};
enum { CASE_ISAS = 4, CASE_THREADS = 4 };

/* How far `got` is from `want`, in units of what rounding allows: `terms` is the sum of the
 * absolute values that were added. bf16 results have 8 bits, fp16 ones 11 above 2^-14. */
static inline double case_distance(double got, double want, double terms, base_dtype dtype) {
    double allowed = 1e-6 * terms + 1e-30;
    if (dtype == BASE_BF16) allowed += (want < 0 ? -want : want) / 256;
    if (dtype == BASE_FP16) allowed += (want < 0 ? -want : want) / 2048 + 0x1p-25;
    double distance = (got - want) / allowed;
    if (!(distance == distance)) return 1e30;
    return distance < 0 ? -distance : distance;
}

#endif
