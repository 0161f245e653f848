/* Kernels that move rows: look-ups in tables, orders of columns, neighbours. */
#include "device/cuda/vector/moves_arguments.h"
#include "device/cuda/vector/row_pieces.h"

template <class unit> DEVICE void gather(const gather_arguments &a) {
    row_place at = place_of_thread(a.units);
    if (at.row >= a.rows) return;
    int64_t row = a.ids ? (int64_t)a.first + a.ids[at.row * a.ids_stride] : at.row;
    ((unit *)a.to)[at.row * a.to_stride + at.piece] =
        ((const unit *)a.table)[row * a.table_stride + at.piece];
}

KERNEL(gather_16, gather_arguments, MOVES_THREADS) {
    gather<uint4>(a);
}

KERNEL(gather_4, gather_arguments, MOVES_THREADS) {
    gather<uint32_t>(a);
}

KERNEL(gather_2, gather_arguments, MOVES_THREADS) {
    gather<uint16_t>(a);
}

template <class type> DEVICE void row_gradient(const row_gradient_arguments &a) {
    typedef typename type::stored element;
    row_place at = place_of_thread(a.pieces);
    if (at.row >= a.rows) return;
    int64_t first = (int64_t)at.piece * ROW_PIECE;
    int count = piece_count(first, a.columns);
    float values[ROW_PIECE];
    read_piece<type>((const element *)a.from + at.row * a.from_stride + first, count, a.wide,
                     values);
    write_gradient<fp32>(a.to + at.row * a.to_stride + first, count, a.wide, a.add, values);
}

KERNEL(row_gradient_fp32, row_gradient_arguments, MOVES_THREADS) {
    row_gradient<fp32>(a);
}

KERNEL(row_gradient_bf16, row_gradient_arguments, MOVES_THREADS) {
    row_gradient<bf16>(a);
}

KERNEL(row_gradient_fp16, row_gradient_arguments, MOVES_THREADS) {
    row_gradient<fp16>(a);
}

template <class type> DEVICE void split_qkv(const split_qkv_arguments &a) {
    typedef typename type::stored element;
    row_place at = place_of_thread(a.groups * a.parts * a.run_pieces);
    if (at.row >= a.rows) return;
    uint32_t run = at.piece / a.run_pieces, other = run % a.groups * a.parts + run / a.groups;
    int64_t first = (int64_t)(at.piece % a.run_pieces) * ROW_PIECE;
    int64_t grouped = run * a.width + first, apart = other * a.width + first;
    int count = piece_count(first, a.width);
    float values[ROW_PIECE];
    read_piece<type>((const element *)a.from + at.row * a.from_stride + (a.back ? grouped : apart),
                     count, a.wide, values);
    write_gradient<type>((element *)a.to + at.row * a.to_stride + (a.back ? apart : grouped), count,
                         a.wide, a.add, values);
}

KERNEL(split_qkv_fp32, split_qkv_arguments, MOVES_THREADS) {
    split_qkv<fp32>(a);
}

KERNEL(split_qkv_bf16, split_qkv_arguments, MOVES_THREADS) {
    split_qkv<bf16>(a);
}

KERNEL(split_qkv_fp16, split_qkv_arguments, MOVES_THREADS) {
    split_qkv<fp16>(a);
}

/* Whether the row at that distance from the block's is in the same sequence and segment, by
 * distance + size / 2; the block's first threads look. */
DEVICE void look_around(const unfold_arguments &a, uint32_t *there) {
    int64_t row = blockIdx.x;
    if (threadIdx.x < (uint32_t)a.size) {
        int64_t distance = (int64_t)threadIdx.x - a.size / 2, at = row % a.length + distance;
        bool is = at >= 0 && at < a.length;
        if (is && a.segments)
            is = a.segments[row * a.segments_stride] ==
                 a.segments[(row + distance) * a.segments_stride];
        there[threadIdx.x] = is;
    }
    __syncthreads();
}

/* A block writes a row, a thread an element. */
template <class type> DEVICE void gather_unfold(const unfold_arguments &a) {
    typedef typename type::stored element;
    SHARED(uint32_t, there, 32); /* DEVICE_MOST_NEIGHBOURS */
    look_around(a, there);
    const element *from = (const element *)a.from;
    element *to = (element *)a.to + (int64_t)blockIdx.x * a.to_stride;
    int32_t size = a.size;
    for (int64_t c = threadIdx.x; c < a.columns * size; c += MOVES_THREADS) {
        int64_t column = c / size;
        int32_t which = (int32_t)(c - column * size);
        int64_t row = (int64_t)blockIdx.x + which - size / 2;
        float value = there[which] ? type::load(from[row * a.from_stride + column]) : 0.0f;
        to[c] = type::store(value);
    }
}

/* The block's row is neighbour `which` of the row at distance size / 2 - which. */
template <class type> DEVICE void sum_unfold(const unfold_arguments &a) {
    typedef typename type::stored element;
    SHARED(uint32_t, there, 32); /* DEVICE_MOST_NEIGHBOURS */
    look_around(a, there);
    const element *from = (const element *)a.from;
    element *to = (element *)a.to + (int64_t)blockIdx.x * a.to_stride;
    int32_t size = a.size;
    for (int64_t c = threadIdx.x; c < a.columns; c += MOVES_THREADS) {
        float sum = 0.0f;
        for (int32_t which = 0; which < size; which++) {
            int64_t row = (int64_t)blockIdx.x + size / 2 - which;
            if (there[size - 1 - which])
                sum += type::load(from[row * a.from_stride + c * size + which]);
        }
        to[c] = type::store(a.add ? sum + type::load(to[c]) : sum);
    }
}

KERNEL(unfold_fp32, unfold_arguments, MOVES_THREADS) {
    gather_unfold<fp32>(a);
}

KERNEL(unfold_bf16, unfold_arguments, MOVES_THREADS) {
    gather_unfold<bf16>(a);
}

KERNEL(unfold_fp16, unfold_arguments, MOVES_THREADS) {
    gather_unfold<fp16>(a);
}

KERNEL(unfold_backward_fp32, unfold_arguments, MOVES_THREADS) {
    sum_unfold<fp32>(a);
}

KERNEL(unfold_backward_bf16, unfold_arguments, MOVES_THREADS) {
    sum_unfold<bf16>(a);
}

KERNEL(unfold_backward_fp16, unfold_arguments, MOVES_THREADS) {
    sum_unfold<fp16>(a);
}
