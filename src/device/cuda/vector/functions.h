/* Functions of one element in fp32: the operations of device/cpu/lanes.h and kernels_elements.c
 * one by one, so the bits are those of the CPU's sets that have fused multiply-adds. The intrinsics
 * of CUDA for exp and tanh would be faster, but their bits belong to a chip; kernels that use these
 * functions wait for memory anyway. */
#ifndef CUDA_FUNCTIONS_H
#define CUDA_FUNCTIONS_H

#include "device/cuda/kernel.h"

/* lanes_exp */
DEVICE float exact_exp(float x) {
    x = x > 88.0f ? 88.0f : x;
    x = x < -87.3f ? -87.3f : x;
    float shifted = fmaf(x, 1.44269504f, 12582912.0f); /* low bits: round(x / ln 2) */
    float n = shifted - 12582912.0f;
    float r = fmaf(n, -0.693359375f, x), p = 1.9875691500e-4f;
    r = fmaf(n, 2.12194440e-4f, r);
    p = fmaf(p, r, 1.3981999507e-3f);
    p = fmaf(p, r, 8.3334519073e-3f);
    p = fmaf(p, r, 4.1665795894e-2f);
    p = fmaf(p, r, 1.6666665459e-1f);
    p = fmaf(p, r, 5.0000001201e-1f);
    p = fmaf(p, r * r, r) + 1.0f;
    return p * base_float_from_bits((base_float_to_bits(shifted) << 23) + 0x3f800000u);
}

DEVICE float exact_sigmoid(float x) {
    return 1.0f / (1.0f + exact_exp(-x));
}

/* lanes_tanh */
DEVICE float exact_tanh(float x) {
    float size = fabsf(x), z = x * x, p = -5.70498872745e-3f;
    p = fmaf(p, z, 2.06390887954e-2f);
    p = fmaf(p, z, -5.37397155531e-2f);
    p = fmaf(p, z, 1.33314422036e-1f);
    p = fmaf(p, z, -3.33332819422e-1f);
    float small = fmaf(p * z, x, x), large = 1.0f - 2.0f / (1.0f + exact_exp(2.0f * size));
    return size < 0.625f ? small : copysignf(large, x);
}

DEVICE float tanh_slope(float x) {
    float t = exact_tanh(x);
    return 1.0f - t * t;
}

DEVICE float gelu_tanh(float x) {
    float u = 0.7978845608f * (x + 0.044715f * x * x * x);
    return x * exact_sigmoid(2.0f * u);
}

DEVICE float gelu_tanh_slope(float x) {
    float u = 0.7978845608f * (x + 0.044715f * x * x * x);
    float du = 0.7978845608f * (1.0f + 3 * 0.044715f * x * x);
    float e = exact_exp(-2.0f * fabsf(u)), s = 1.0f / (1.0f + e);
    float product = s * (e * s);
    return (u < 0.0f ? e * s : s) + 2.0f * x * product * du;
}

DEVICE float erfc_positive(float z) {
    float t = 1.0f / (1.0f + 0.5f * z), p = 0.17087277f;
    p = fmaf(p, t, -0.82215223f);
    p = fmaf(p, t, 1.48851587f);
    p = fmaf(p, t, -1.13520398f);
    p = fmaf(p, t, 0.27886807f);
    p = fmaf(p, t, -0.18628806f);
    p = fmaf(p, t, 0.09678418f);
    p = fmaf(p, t, 0.37409196f);
    p = fmaf(p, t, 1.00002368f);
    return t * exact_exp(p * t - 1.26551223f - z * z);
}

DEVICE float normal_cdf(float x) {
    float tail = 0.5f * erfc_positive(fabsf(x) * 0.70710678f);
    return x < 0.0f ? tail : 1.0f - tail;
}

DEVICE float gelu_erf(float x) {
    return x * normal_cdf(x);
}

DEVICE float gelu_erf_slope(float x) {
    return normal_cdf(x) + x * 0.3989422804f * exact_exp(-0.5f * x * x);
}

DEVICE float swish_slope(float x, float slope) {
    float z = slope * x, e = exact_exp(-fabsf(z)), s = 1.0f / (1.0f + e), other = e * s;
    return (z < 0.0f ? other : s) + z * (s * other);
}

#endif
