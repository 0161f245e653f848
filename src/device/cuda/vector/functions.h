/* Functions of one element in fp32: the operations of device/cpu/lanes.h one by one, so the bits
 * are those of the CPU's sets that have fused multiply-adds. The intrinsics of CUDA for exp and
 * tanh would be faster, but their bits belong to a chip; kernels that use these functions wait for
 * memory anyway. */
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

#endif
