/* Magnitudes of a product's columns (DoRA), with the operations of device/cpu/vector/magnitude.c in
 * their order. */
#include "device/cuda/vector/magnitude_arguments.h"

#include "device/cuda/vector/packs.h"
#include "device/cuda/vector/row_pieces.h"

enum { LANES = MAGNITUDE_LANES };
static_assert((int)LANES == 32 && (int)MAGNITUDE_RUN == (int)ROW_PIECE,
              "a thread of a warp has a lane, and warp_sum adds lanes in their order");

/* Elements first ... first + count - 1 of row `row` of w, or of its transpose. */
template <class type>
DEVICE void read_weights(const magnitude_norms_arguments &a, int64_t row, int64_t first, int count,
                         float to[ROW_PIECE]) {
    const typename type::stored *w = (const typename type::stored *)a.w;
    if (!a.transposed) {
        read_piece<type>(w + row * a.w_stride + first, count, a.wide, to);
        return;
    }
#pragma unroll
    for (int i = 0; i < ROW_PIECE; i++)
        to[i] = i < count ? type::load(w[(first + i) * a.w_stride + row]) : 0.0f;
}

/* Adds the products of the adapter's factors, number by number of its rank. */
template <class type>
DEVICE void add_products(const magnitude_norms_arguments &a, const int64_t rows[NORMS_ROWS],
                         int64_t first, int count, float values[NORMS_ROWS][ROW_PIECE]) {
    const typename type::stored *factors = (const typename type::stored *)a.a + first;
    const typename type::stored *shares = (const typename type::stored *)a.b;
#pragma unroll 2
    for (int64_t k = 0; k < a.rank; k++) {
        float factor[ROW_PIECE];
        read_piece<type>(factors + k * a.a_stride, count, a.wide, factor);
#pragma unroll
        for (int r = 0; r < NORMS_ROWS; r++) {
            float share = a.scale * type::load(shares[rows[r] * a.b_stride + k]);
#pragma unroll
            for (int i = 0; i < ROW_PIECE; i++) values[r][i] += share * factor[i];
        }
    }
}

/* A warp makes the norms of a few rows, so that a piece of x1 is read once for all of them. */
template <class type> DEVICE void magnitude_norms(const magnitude_norms_arguments &a) {
    int lane = (int)threadIdx.x % LANES;
    int64_t begin = ((int64_t)blockIdx.x * NORMS_WARPS + threadIdx.x / LANES) * NORMS_ROWS;
    int64_t rows[NORMS_ROWS];
    double sums[NORMS_ROWS] = {};
    if (begin >= a.out) return;
#pragma unroll
    for (int r = 0; r < NORMS_ROWS; r++) rows[r] = begin + r < a.out ? begin + r : begin;
    for (int64_t first = lane * ROW_PIECE; first < a.in; first += LANES * ROW_PIECE) {
        int count = piece_count(first, a.in);
        float values[NORMS_ROWS][ROW_PIECE];
#pragma unroll
        for (int r = 0; r < NORMS_ROWS; r++)
            read_weights<type>(a, rows[r], first, count, values[r]);
        add_products<type>(a, rows, first, count, values);
#pragma unroll
        for (int r = 0; r < NORMS_ROWS; r++)
#pragma unroll
            for (int i = 0; i < ROW_PIECE; i++)
                if (i < count) sums[r] += (double)values[r][i] * (double)values[r][i];
    }
#pragma unroll
    for (int r = 0; r < NORMS_ROWS; r++) {
        double sum = warp_sum(sums[r]);
        if (lane == 0 && begin + r < a.out) a.norms[begin + r] = (float)sqrt(sum);
    }
}

KERNEL(magnitude_norms_fp32, magnitude_norms_arguments, NORMS_WARPS *LANES) {
    magnitude_norms<fp32>(a);
}

KERNEL(magnitude_norms_bf16, magnitude_norms_arguments, NORMS_WARPS *LANES) {
    magnitude_norms<bf16>(a);
}

KERNEL(magnitude_norms_fp16, magnitude_norms_arguments, NORMS_WARPS *LANES) {
    magnitude_norms<fp16>(a);
}

/* A thread takes the same columns of a few rows, for which it divides once. */
template <int type> DEVICE void magnitude_scale(const magnitude_scale_arguments &a) {
    int64_t groups = (a.rows + MAGNITUDE_ROWS - 1) / MAGNITUDE_ROWS;
    pack_place at =
        place_of_pack((int64_t)blockIdx.x * PACK_THREADS + threadIdx.x, groups, a.columns);
    int64_t row = at.row * MAGNITUDE_ROWS;
    pack_words from[MAGNITUDE_ROWS], other[MAGNITUDE_ROWS], bias = {};
    float ratio[PACK], norms[PACK];
    if (at.count == 0) return;
    int rows = a.rows - row < MAGNITUDE_ROWS ? (int)(a.rows - row) : MAGNITUDE_ROWS;
    widen_pack(load_pack(a.magnitudes, at.first, type, at.count), type, ratio);
    widen_pack(load_pack(a.norms, at.first, BASE_FP32, at.count), BASE_FP32, norms);
    if (a.bias) bias = load_pack(a.bias, at.first, type, at.count);
#pragma unroll
    for (int r = 0; r < MAGNITUDE_ROWS; r++) {
        int count = r < rows ? at.count : 0;
        from[r] = load_pack(a.from, (row + r) * a.from_stride + at.first, type, count);
        other[r] = bias;
        if (a.add) other[r] = load_pack(a.to, (row + r) * a.to_stride + at.first, type, count);
    }
#pragma unroll
    for (int i = 0; i < PACK; i++) ratio[i] = ratio[i] / norms[i];
#pragma unroll
    for (int r = 0; r < MAGNITUDE_ROWS; r++) {
        float values[PACK], others[PACK];
        widen_pack(from[r], type, values);
        widen_pack(other[r], type, others);
#pragma unroll
        for (int i = 0; i < PACK; i++) values[i] = values[i] * ratio[i] + others[i];
        store_pack(a.to, (row + r) * a.to_stride + at.first, type, r < rows ? at.count : 0,
                   narrow_pack(values, type));
    }
}

KERNEL(magnitude_scale_fp32, magnitude_scale_arguments, PACK_THREADS) {
    magnitude_scale<BASE_FP32>(a);
}

KERNEL(magnitude_scale_bf16, magnitude_scale_arguments, PACK_THREADS) {
    magnitude_scale<BASE_BF16>(a);
}

KERNEL(magnitude_scale_fp16, magnitude_scale_arguments, PACK_THREADS) {
    magnitude_scale<BASE_FP16>(a);
}

/* A block has a few columns, a thread one of them; its warps take parts of the rows in turns, and
 * the first one adds these in order. */
template <class type> DEVICE void magnitude_sums(const magnitude_sums_arguments &a) {
    typedef typename type::stored element;
    SHARED(float, sums, MAGNITUDE_WARPS *MAGNITUDE_COLUMNS);
    int lane = (int)threadIdx.x % MAGNITUDE_COLUMNS, warp = (int)threadIdx.x / MAGNITUDE_COLUMNS;
    int64_t column = (int64_t)blockIdx.x * MAGNITUDE_COLUMNS + lane;
    bool there = column < a.columns;
    const element *x = (const element *)a.x + column, *dy = (const element *)a.dy + column;
    float total = 0.0f;
    for (int64_t first_row = 0; first_row < a.rows; first_row += MAGNITUDE_WARPS * MAGNITUDE_PART) {
        int64_t first = first_row + warp * MAGNITUDE_PART;
        int64_t end = first + MAGNITUDE_PART < a.rows ? first + MAGNITUDE_PART : a.rows;
        float sum = 0.0f;
#pragma unroll 8
        for (int64_t row = first; there && row < end; row++)
            sum += type::load(dy[row * a.dy_stride]) * type::load(x[row * a.x_stride]);
        sums[threadIdx.x] = sum;
        __syncthreads();
        for (int w = 0; warp == 0 && w < MAGNITUDE_WARPS; w++)
            if (first_row + w * MAGNITUDE_PART < a.rows) total += sums[w * MAGNITUDE_COLUMNS + lane];
        __syncthreads();
    }
    if (warp > 0 || !there) return;
    float sum = total / a.norms[column];
    a.to[column] = a.add ? a.to[column] + sum : sum;
}

KERNEL(magnitude_sums_fp32, magnitude_sums_arguments, MAGNITUDE_WARPS *MAGNITUDE_COLUMNS) {
    magnitude_sums<fp32>(a);
}

KERNEL(magnitude_sums_bf16, magnitude_sums_arguments, MAGNITUDE_WARPS *MAGNITUDE_COLUMNS) {
    magnitude_sums<bf16>(a);
}

KERNEL(magnitude_sums_fp16, magnitude_sums_arguments, MAGNITUDE_WARPS *MAGNITUDE_COLUMNS) {
    magnitude_sums<fp16>(a);
}
