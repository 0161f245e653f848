/* Kernels that compute element by element, a pack a thread. Each is written once, for one element,
 * with the operations of device/cpu/vector/kernels_elements.c. */
#include "device/cuda/vector/elements_arguments.h"
#include "device/cuda/vector/functions.h"
#include "device/cuda/vector/packs.h"

#define ACTIVATION DEVICE
#define ACTIVATION_FMA fmaf
#define activation_exp exact_exp
#define activation_sigmoid exact_sigmoid
#define activation_tanh exact_tanh
#include "device/activations.h"

DEVICE pack_place own_place(int64_t rows, int64_t columns) {
    return place_of_pack((int64_t)blockIdx.x * PACK_THREADS + threadIdx.x, rows, columns);
}

DEVICE pack_words load_operand(const elements_operand &m, const pack_place &place, int type) {
    return load_pack(m.data, place.row * m.stride + place.first, type, place.count);
}

/* What a result is added to: nothing, where it is overwritten or not wanted. */
DEVICE pack_words load_before(const elements_operand &m, const pack_place &place, int type,
                              bool add) {
    pack_words nothing = {};
    return add && m.data ? load_operand(m, place, type) : nothing;
}

DEVICE void store_result(const elements_operand &m, const pack_place &place, int type, bool add,
                         const pack_words &before, float values[PACK]) {
    if (!m.data) return;
    if (add) {
        float wide[PACK];
        widen_pack(before, type, wide);
#pragma unroll
        for (int i = 0; i < PACK; i++) values[i] += wide[i];
    }
    store_pack(m.data, place.row * m.stride + place.first, type, place.count,
               narrow_pack(values, type));
}

/* y = function(x0, number) */
template <int from, int to, float (*function)(float, float)>
DEVICE void one_operand(const elements_arguments &a) {
    pack_place place = own_place(a.rows, a.columns);
    float x[PACK], y[PACK];
    if (place.count == 0) return;
    pack_words first = load_operand(a.x[0], place, from);
    pack_words before = load_before(a.result[0], place, to, a.add[0]);
    widen_pack(first, from, x);
#pragma unroll
    for (int i = 0; i < PACK; i++) y[i] = function(x[i], a.number);
    store_result(a.result[0], place, to, a.add[0], before, y);
}

/* y = factor x0, the factor an element of x0's type */
template <int type> DEVICE void by_factor(const elements_arguments &a) {
    pack_place place = own_place(a.rows, a.columns);
    float x[PACK], factor[PACK];
    if (place.count == 0) return;
    pack_words first = load_operand(a.x[0], place, type);
    pack_words before = load_before(a.result[0], place, type, a.add[0]);
    widen_pack(load_pack(a.factor, 0, type, 1), type, factor);
    widen_pack(first, type, x);
#pragma unroll
    for (int i = 0; i < PACK; i++) x[i] = factor[0] * x[i];
    store_result(a.result[0], place, type, a.add[0], before, x);
}

/* y = function(x0, x1) */
template <int type, float (*function)(float, float)>
DEVICE void two_operands(const elements_arguments &a) {
    pack_place place = own_place(a.rows, a.columns);
    pack_words none = {};
    float x0[PACK], x1[PACK], y[PACK];
    if (place.count == 0) return;
    pack_words first = load_operand(a.x[0], place, type);
    pack_words second = load_operand(a.x[1], place, type);
    widen_pack(first, type, x0);
    widen_pack(second, type, x1);
#pragma unroll
    for (int i = 0; i < PACK; i++) y[i] = function(x0[i], x1[i]);
    store_result(a.result[0], place, type, false, none, y);
}

/* dx0 = gradient(x0, dy, number) */
template <int type, float (*gradient)(float, float, float)>
DEVICE void one_gradient(const elements_arguments &a) {
    pack_place place = own_place(a.rows, a.columns);
    float x[PACK], dy[PACK], dx[PACK];
    if (place.count == 0) return;
    pack_words first = load_operand(a.x[0], place, type);
    pack_words last = load_operand(a.dy, place, type);
    pack_words before = load_before(a.result[0], place, type, a.add[0]);
    widen_pack(first, type, x);
    widen_pack(last, type, dy);
#pragma unroll
    for (int i = 0; i < PACK; i++) dx[i] = gradient(x[i], dy[i], a.number);
    store_result(a.result[0], place, type, a.add[0], before, dx);
}

typedef struct gradient_pair {
    float of_x0, of_x1;
} gradient_pair;

/* dx0 and dx1 = gradients(x0, x1, dy) */
template <int type, gradient_pair (*gradients)(float, float, float)>
DEVICE void two_gradients(const elements_arguments &a) {
    pack_place place = own_place(a.rows, a.columns);
    float x0[PACK], x1[PACK], dy[PACK], dx0[PACK], dx1[PACK];
    if (place.count == 0) return;
    pack_words first = load_operand(a.x[0], place, type);
    pack_words second = load_operand(a.x[1], place, type);
    pack_words last = load_operand(a.dy, place, type);
    pack_words before0 = load_before(a.result[0], place, type, a.add[0]);
    pack_words before1 = load_before(a.result[1], place, type, a.add[1]);
    widen_pack(first, type, x0);
    widen_pack(second, type, x1);
    widen_pack(last, type, dy);
#pragma unroll
    for (int i = 0; i < PACK; i++) {
        gradient_pair both = gradients(x0[i], x1[i], dy[i]);
        dx0[i] = both.of_x0;
        dx1[i] = both.of_x1;
    }
    store_result(a.result[0], place, type, a.add[0], before0, dx0);
    store_result(a.result[1], place, type, a.add[1], before1, dx1);
}

/* --- one element --- */

DEVICE float itself(float x, float) {
    return x;
}

DEVICE float scaled(float x, float factor) {
    return factor * x;
}

DEVICE float sum_of(float x0, float x1) {
    return x0 + x1;
}

DEVICE float product_of(float x0, float x1) {
    return x0 * x1;
}

DEVICE float silu_gate_of(float x0, float x1) {
    return x0 * exact_sigmoid(x0) * x1;
}

DEVICE float gelu_tanh_gate_of(float x0, float x1) {
    return gelu_tanh(x0) * x1;
}

DEVICE float gelu_erf_gate_of(float x0, float x1) {
    return gelu_erf(x0) * x1;
}

DEVICE gradient_pair product_gradients(float x0, float x1, float dy) {
    gradient_pair both = {dy * x1, dy * x0};
    return both;
}

DEVICE gradient_pair silu_gate_gradients(float x0, float x1, float dy) {
    float e = exact_exp(-fabsf(x0)), s = 1.0f / (1.0f + e), other = e * s;
    float sigmoid = x0 < 0.0f ? other : s, scaled = dy * x1, dv = dy * x0;
    gradient_pair both = {scaled * (sigmoid + x0 * (s * other)), dv * sigmoid};
    return both;
}

DEVICE gradient_pair gelu_tanh_gate_gradients(float x0, float x1, float dy) {
    gradient_pair both = {dy * x1 * gelu_tanh_slope(x0), dy * gelu_tanh(x0)};
    return both;
}

DEVICE gradient_pair gelu_erf_gate_gradients(float x0, float x1, float dy) {
    gradient_pair both = {dy * x1 * gelu_erf_slope(x0), dy * gelu_erf(x0)};
    return both;
}

/* --- kernels: one for each of the three types --- */

#define ELEMENTS(name, ...)                                                                        \
    KERNEL(name, elements_arguments, PACK_THREADS) {                                               \
        __VA_ARGS__(a);                                                                            \
    }
#define ONE_OPERAND(name, function)                                                                \
    ELEMENTS(name##_fp32, one_operand<BASE_FP32, BASE_FP32, function>)                             \
    ELEMENTS(name##_bf16, one_operand<BASE_BF16, BASE_BF16, function>)                             \
    ELEMENTS(name##_fp16, one_operand<BASE_FP16, BASE_FP16, function>)
#define EACH_TYPE(name, form, function)                                                            \
    ELEMENTS(name##_fp32, form<BASE_FP32, function>)                                               \
    ELEMENTS(name##_bf16, form<BASE_BF16, function>)                                               \
    ELEMENTS(name##_fp16, form<BASE_FP16, function>)

ONE_OPERAND(scale, scaled)
ELEMENTS(scale_by_fp32, by_factor<BASE_FP32>)
ELEMENTS(scale_by_bf16, by_factor<BASE_BF16>)
ELEMENTS(scale_by_fp16, by_factor<BASE_FP16>)

#define FORM(name)                                                                                 \
    ONE_OPERAND(name, name##_of)                                                                   \
    EACH_TYPE(name##_backward, one_gradient, name##_gradient)
#define DEVICE_ACTIVATION(NAME, name, number) FORM(name)
#define DEVICE_ACTIVATION_FORMS(NAME, name, which, one, other) FORM(one) FORM(other)
#include "device/kernels.def"

EACH_TYPE(add, two_operands, sum_of)
EACH_TYPE(multiply, two_operands, product_of)
EACH_TYPE(silu_gate, two_operands, silu_gate_of)
EACH_TYPE(gelu_tanh_gate, two_operands, gelu_tanh_gate_of)
EACH_TYPE(gelu_erf_gate, two_operands, gelu_erf_gate_of)

EACH_TYPE(multiply_backward, two_gradients, product_gradients)
EACH_TYPE(silu_gate_backward, two_gradients, silu_gate_gradients)
EACH_TYPE(gelu_tanh_gate_backward, two_gradients, gelu_tanh_gate_gradients)
EACH_TYPE(gelu_erf_gate_backward, two_gradients, gelu_erf_gate_gradients)

/* Conversions between the types; of one type to itself, they make NaNs quiet. */
#define CONVERSION(name, from, to) ELEMENTS(name, one_operand<from, to, itself>)

CONVERSION(convert_fp32_fp32, BASE_FP32, BASE_FP32)
CONVERSION(convert_fp32_bf16, BASE_FP32, BASE_BF16)
CONVERSION(convert_fp32_fp16, BASE_FP32, BASE_FP16)
CONVERSION(convert_bf16_fp32, BASE_BF16, BASE_FP32)
CONVERSION(convert_bf16_bf16, BASE_BF16, BASE_BF16)
CONVERSION(convert_bf16_fp16, BASE_BF16, BASE_FP16)
CONVERSION(convert_fp16_fp32, BASE_FP16, BASE_FP32)
CONVERSION(convert_fp16_bf16, BASE_FP16, BASE_BF16)
CONVERSION(convert_fp16_fp16, BASE_FP16, BASE_FP16)
