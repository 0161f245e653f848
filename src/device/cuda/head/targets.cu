/* Heads with numbers as targets: a warp has a row of logits, then gradients of the hidden values
 * and of the weights follow from the gradients of the logits. */
#include "device/cuda/head/targets_arguments.h"
#include "device/cuda/vector/functions.h"
#include "device/cuda/vector/row_pieces.h"

/* Rows whose first target is a NaN have none. Looks at bits, which no flag of a compiler can make
 * it forget. */
DEVICE bool has_target(const float *targets, int64_t row, int64_t stride) {
    return (base_float_to_bits(targets[row * stride]) & 0x7fffffff) <= 0x7f800000;
}

/* log(1 + e) = 2 artanh(s) for e from 0 to 1, s = e / (2 + e). Its series needs eight terms up to
 * s = 1/3. */
DEVICE float log_of(float s) {
    float z = s * s, p = 1.0f / 15;
    p = fmaf(p, z, 1.0f / 13);
    p = fmaf(p, z, 1.0f / 11);
    p = fmaf(p, z, 1.0f / 9);
    p = fmaf(p, z, 1.0f / 7);
    p = fmaf(p, z, 1.0f / 5);
    p = fmaf(p, z, 1.0f / 3);
    return 2.0f * fmaf(p * z, s, s);
}

/* The loss of one logit; *slope is its derivative. */
DEVICE float square_error(float logit, float target, float *slope) {
    float error = logit - target;
    *slope = 2.0f * error;
    return error * error;
}

/* max(l, 0) - l t + log(1 + e^-|l|). One division serves the sigmoid and the logarithm. */
DEVICE float binary_entropy(float logit, float target, float *slope) {
    float e = exact_exp(-fabsf(logit)), one = 1.0f + e, two = 2.0f + e,
          inverse = 1.0f / (one * two);
    float s = two * inverse, above = logit > 0.0f ? logit : 0.0f;
    *slope = (logit < 0.0f ? e * s : s) - target;
    return (above - logit * target) + log_of(e * (one * inverse));
}

/* The product of a row of hidden values with one of the weights, in all lanes. */
template <class type>
DEVICE float warp_product(const targets_arguments &a, int64_t row, int64_t column) {
    typedef typename type::stored element;
    const element *x = (const element *)a.x + row * a.x_stride;
    const element *w = (const element *)a.w + column * a.w_stride;
    float sum = 0.0f, xs[ROW_PIECE], ws[ROW_PIECE];
    for (int64_t at = (int64_t)(threadIdx.x % 32) * ROW_PIECE; at < a.width; at += 32 * ROW_PIECE) {
        int count = piece_count(at, a.width);
        read_piece<type>(x + at, count, a.wide, xs);
        read_piece<type>(w + at, count, a.wide, ws);
#pragma unroll
        for (int i = 0; i < ROW_PIECE; i++) sum = fmaf(xs[i], ws[i], sum);
    }
    return warp_sum(sum);
}

/* Lanes make products together, 32 columns of them, and each has the loss of one. */
template <class type> DEVICE void targets_rows(const targets_arguments &a) {
    typedef typename type::stored element;
    uint32_t lane = threadIdx.x % 32;
    int64_t row = (int64_t)blockIdx.x * TARGETS_WARPS + threadIdx.x / 32;
    if (row >= a.rows) return;
    if (!has_target(a.targets, row, a.targets_stride)) {
        if (lane == 0) a.loss[row * a.loss_stride] = 0.0f;
        return; /* its gradients are not read */
    }
    float scale = a.gradients ? a.step->gradient_scale / (float)a.columns : 0.0f;
    double total = 0;
    for (int64_t first = 0; first < a.columns; first += 32) {
        float logit = 0.0f, slope;
        for (int64_t j = first; j < first + 32 && j < a.columns; j++) {
            float product = warp_product<type>(a, row, j);
            if (first + lane == j) logit = product;
        }
        int64_t own = first + lane;
        if (own >= a.columns) continue;
        if (a.bias) logit += type::load(((const element *)a.bias)[own]);
        float target = a.targets[row * a.targets_stride + own];
        total += (double)(a.multilabel ? binary_entropy(logit, target, &slope)
                                       : square_error(logit, target, &slope));
        if (a.gradients) a.gradients[row * a.columns + own] = slope * scale;
    }
    total = warp_sum(total);
    if (lane == 0) a.loss[row * a.loss_stride] = (float)(total / (double)a.columns);
}

KERNEL(targets_rows_fp32, targets_arguments, TARGETS_THREADS) {
    targets_rows<fp32>(a);
}

KERNEL(targets_rows_bf16, targets_arguments, TARGETS_THREADS) {
    targets_rows<bf16>(a);
}

KERNEL(targets_rows_fp16, targets_arguments, TARGETS_THREADS) {
    targets_rows<fp16>(a);
}

template <class type> DEVICE void targets_dx(const targets_dx_arguments &a) {
    typedef typename type::stored element;
    row_place place = place_of_thread(a.pieces);
    if (place.row >= a.rows) return;
    int64_t at = (int64_t)place.piece * ROW_PIECE;
    int count = piece_count(at, a.width);
    element *dx = (element *)a.dx + place.row * a.dx_stride + at;
    float sums[ROW_PIECE] = {0}, ws[ROW_PIECE];
    if (!has_target(a.targets, place.row, a.targets_stride)) {
        if (!a.add) write_piece<type>(dx, count, a.wide, sums);
        return;
    }
    const float *gradients = a.gradients + place.row * a.columns;
    for (int64_t j = 0; j < a.columns; j++) {
        read_piece<type>((const element *)a.w + j * a.w_stride + at, count, a.wide, ws);
#pragma unroll
        for (int i = 0; i < ROW_PIECE; i++) sums[i] = fmaf(gradients[j], ws[i], sums[i]);
    }
    write_gradient<type>(dx, count, a.wide, a.add, sums);
}

KERNEL(targets_dx_fp32, targets_dx_arguments, TARGETS_THREADS) {
    targets_dx<fp32>(a);
}

KERNEL(targets_dx_bf16, targets_dx_arguments, TARGETS_THREADS) {
    targets_dx<bf16>(a);
}

KERNEL(targets_dx_fp16, targets_dx_arguments, TARGETS_THREADS) {
    targets_dx<fp16>(a);
}

/* A thread has eight elements of a row of dw and goes through the rows of its slice in order. The
 * one at the row's start adds up db as well. */
template <class type> DEVICE void targets_dw(const targets_dw_arguments &a) {
    typedef typename type::stored element;
    int64_t j = blockIdx.x / a.tiles, slice = blockIdx.y;
    int64_t at = ((int64_t)(blockIdx.x % a.tiles) * TARGETS_THREADS + threadIdx.x) * ROW_PIECE;
    int64_t first = slice * a.each, end = first + a.each < a.rows ? first + a.each : a.rows;
    if (at >= a.width) return;
    int count = piece_count(at, a.width);
    float sums[ROW_PIECE] = {0}, xs[ROW_PIECE], bias = 0.0f;
    for (int64_t r = first; r < end; r++) {
        if (!has_target(a.targets, r, a.targets_stride)) continue;
        float g = a.gradients[r * a.columns + j];
        bias += g;
        if (!a.wants_dw) continue;
        read_piece<type>((const element *)a.x + r * a.x_stride + at, count, a.wide, xs);
#pragma unroll
        for (int i = 0; i < ROW_PIECE; i++) sums[i] = fmaf(g, xs[i], sums[i]);
    }
    float *part = a.parts + slice * a.columns * (a.width + 1);
    write_piece<fp32>(part + j * a.width + at, count, false, sums);
    if (at == 0) part[a.columns * a.width + j] = bias;
}

KERNEL(targets_dw_fp32, targets_dw_arguments, TARGETS_THREADS) {
    targets_dw<fp32>(a);
}

KERNEL(targets_dw_bf16, targets_dw_arguments, TARGETS_THREADS) {
    targets_dw<bf16>(a);
}

KERNEL(targets_dw_fp16, targets_dw_arguments, TARGETS_THREADS) {
    targets_dw<fp16>(a);
}
