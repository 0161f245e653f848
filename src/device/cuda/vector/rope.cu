/* Rotary embedding: a thread rotates eight pairs of a head, or copies eight elements that stay. */
#include "device/cuda/vector/rope_arguments.h"
#include "device/cuda/vector/row_pieces.h"

/* a, b = (a cos - b sin, b cos + a sin), with the fused products of the CPU's kernel. */
DEVICE void rotate(float a[ROW_PIECE], float b[ROW_PIECE], const float *cosines, const float *sines,
                   float sign, int count, bool wide) {
    float cosine[ROW_PIECE], sine[ROW_PIECE];
    read_piece<fp32>(cosines, count, wide, cosine);
    read_piece<fp32>(sines, count, wide, sine);
#pragma unroll
    for (int i = 0; i < ROW_PIECE; i++) {
        float s = sign * sine[i], first = a[i], second = b[i];
        a[i] = fmaf(-second, s, first * cosine[i]);
        b[i] = fmaf(first, s, second * cosine[i]);
    }
}

template <class type>
DEVICE void rotate_halves(const rope_arguments &a, const typename type::stored *from,
                        typename type::stored *to, const float *table, int count, float sign) {
    float first[ROW_PIECE], second[ROW_PIECE];
    read_piece<type>(from, count, a.wide, first);
    read_piece<type>(from + a.half, count, a.wide, second);
    rotate(first, second, table, table + a.half, sign, count, a.wide);
    write_gradient<type>(to, count, a.wide, a.add, first);
    write_gradient<type>(to + a.half, count, a.wide, a.add, second);
}

/* Turns element 2 i with 2 i + 1: two pieces that lie side by side. */
template <class type>
DEVICE void rotate_pairs(const rope_arguments &a, const typename type::stored *from,
                       typename type::stored *to, const float *table, int count, float sign) {
    float both[2][ROW_PIECE], first[ROW_PIECE], second[ROW_PIECE];
    int counts[2] = {2 * count < ROW_PIECE ? 2 * count : ROW_PIECE, 2 * count - ROW_PIECE};
#pragma unroll
    for (int p = 0; p < 2; p++) read_piece<type>(from + p * ROW_PIECE, counts[p], a.wide, both[p]);
#pragma unroll
    for (int i = 0; i < ROW_PIECE; i++) {
        first[i] = both[i / 4][2 * i % ROW_PIECE];
        second[i] = both[i / 4][2 * i % ROW_PIECE + 1];
    }
    rotate(first, second, table, table + a.half, sign, count, a.wide);
#pragma unroll
    for (int i = 0; i < ROW_PIECE; i++) {
        both[i / 4][2 * i % ROW_PIECE] = first[i];
        both[i / 4][2 * i % ROW_PIECE + 1] = second[i];
    }
#pragma unroll
    for (int p = 0; p < 2; p++)
        write_gradient<type>(to + p * ROW_PIECE, counts[p], a.wide, a.add, both[p]);
}

template <class type> DEVICE void rope(const rope_arguments &a) {
    typedef typename type::stored element;
    row_place at = place_of_thread(a.heads * a.head_pieces);
    if (at.row >= a.rows) return;
    int64_t head = at.piece / a.head_pieces, piece = at.piece % a.head_pieces;
    const element *from = (const element *)a.from + at.row * a.from_stride + head * a.head_dim;
    element *to = (element *)a.to + at.row * a.to_stride + head * a.head_dim;
    if (piece >= a.rotated_pieces) {
        int64_t first = 2 * (int64_t)a.half + (piece - a.rotated_pieces) * ROW_PIECE;
        int count = piece_count(first, a.head_dim);
        float values[ROW_PIECE];
        read_piece<type>(from + first, count, a.wide, values);
        write_gradient<type>(to + first, count, a.wide, a.add, values);
        return;
    }
    int64_t first = piece * ROW_PIECE;
    const float *table =
        a.table + first + (int64_t)a.positions[at.row * a.positions_stride] * a.table_stride;
    int count = piece_count(first, a.half);
    float sign = a.back ? -1.0f : 1.0f;
    if (a.interleaved)
        rotate_pairs<type>(a, from + 2 * first, to + 2 * first, table, count, sign);
    else
        rotate_halves<type>(a, from + first, to + first, table, count, sign);
}

KERNEL(rope_fp32, rope_arguments, ROPE_THREADS) {
    rope<fp32>(a);
}

KERNEL(rope_bf16, rope_arguments, ROPE_THREADS) {
    rope<bf16>(a);
}

KERNEL(rope_fp16, rope_arguments, ROPE_THREADS) {
    rope<fp16>(a);
}
