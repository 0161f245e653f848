/* The activations of kernels/elements.def: what the functions of one element x are, and what
 * becomes of dy, in fp32. The CPU's compiler takes this text for each instruction set, and that of
 * GPUs once, so both do the same operations in the same order. NAME of a row has NAME_of(x, number)
 * and NAME_gradient(x, dy, number). Who includes this defines ACTIVATION, which stands before a
 * function, ACTIVATION_FMA(a, b, c), and activation_exp, activation_sigmoid and activation_tanh. */

/* transformers' gelu_new: 0.5 x (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3), computed as x s,
 * s = 1 / (1 + e^(-2u)), which loses no digits as 1 + tanh(u) nears 0. */
ACTIVATION float gelu_tanh(float x) {
    float u = 0.7978845608f * (x + 0.044715f * x * x * x);
    return x * activation_sigmoid(2.0f * u);
}

/* s + 2 x s (1 - s) u' */
ACTIVATION float gelu_tanh_slope(float x) {
    float u = 0.7978845608f * (x + 0.044715f * x * x * x);
    float du = 0.7978845608f * (1.0f + 3 * 0.044715f * x * x);
    float e = activation_exp(-2.0f * fabsf(u)), s = 1.0f / (1.0f + e);
    float product = s * (e * s); /* s (1 - s), which is even in u */
    return (u < 0.0f ? e * s : s) + 2.0f * x * product * du;
}

ACTIVATION float gelu_tanh_of(float x, float number) {
    (void)number;
    return gelu_tanh(x);
}

ACTIVATION float gelu_tanh_gradient(float x, float dy, float number) {
    (void)number;
    return dy * gelu_tanh_slope(x);
}

/* 1 - erf(z) for z >= 0; relative error under 1.2e-7, besides rounding. The Chebyshev fit of Press
 * et al., Numerical Recipes, section 6.2 (erfcc). */
ACTIVATION float erfc_positive(float z) {
    float t = 1.0f / (1.0f + 0.5f * z), p = 0.17087277f;
    p = ACTIVATION_FMA(p, t, -0.82215223f);
    p = ACTIVATION_FMA(p, t, 1.48851587f);
    p = ACTIVATION_FMA(p, t, -1.13520398f);
    p = ACTIVATION_FMA(p, t, 0.27886807f);
    p = ACTIVATION_FMA(p, t, -0.18628806f);
    p = ACTIVATION_FMA(p, t, 0.09678418f);
    p = ACTIVATION_FMA(p, t, 0.37409196f);
    p = ACTIVATION_FMA(p, t, 1.00002368f);
    return t * activation_exp(p * t - 1.26551223f - z * z);
}

/* The cumulative distribution function of the normal distribution. */
ACTIVATION float normal_cdf(float x) {
    float tail = 0.5f * erfc_positive(fabsf(x) * 0.70710678f);
    return x < 0.0f ? tail : 1.0f - tail;
}

ACTIVATION float gelu_erf(float x) {
    return x * normal_cdf(x);
}

ACTIVATION float gelu_erf_slope(float x) {
    return normal_cdf(x) + x * 0.3989422804f * activation_exp(-0.5f * x * x);
}

ACTIVATION float gelu_erf_of(float x, float number) {
    (void)number;
    return gelu_erf(x);
}

ACTIVATION float gelu_erf_gradient(float x, float dy, float number) {
    (void)number;
    return dy * gelu_erf_slope(x);
}

ACTIVATION float tanh_of(float x, float number) {
    (void)number;
    return activation_tanh(x);
}

ACTIVATION float tanh_gradient(float x, float dy, float number) {
    float t = activation_tanh(x);
    (void)number;
    return dy * (1.0f - t * t);
}

ACTIVATION float relu_of(float x, float number) {
    (void)number;
    return x > 0.0f ? x : 0.0f;
}

ACTIVATION float relu_gradient(float x, float dy, float number) {
    (void)number;
    return x > 0.0f ? dy : 0.0f;
}

ACTIVATION float relu_squared_of(float x, float number) {
    (void)number;
    return x > 0.0f ? x * x : 0.0f;
}

ACTIVATION float relu_squared_gradient(float x, float dy, float number) {
    (void)number;
    return x > 0.0f ? 2.0f * x * dy : 0.0f;
}

ACTIVATION float swish_of(float x, float slope) {
    return x * activation_sigmoid(slope * x);
}

/* s + slope x s (1 - s) */
ACTIVATION float swish_gradient(float x, float dy, float slope) {
    float z = slope * x, e = activation_exp(-fabsf(z)), s = 1.0f / (1.0f + e), other = e * s;
    return dy * ((z < 0.0f ? other : s) + z * (s * other));
}

/* NaN stays NaN. */
ACTIVATION float clip_of(float x, float limit) {
    return x > limit ? limit : x < -limit ? -limit : x;
}

ACTIVATION float clip_gradient(float x, float dy, float limit) {
    return fabsf(x) > limit ? 0.0f : dy;
}
