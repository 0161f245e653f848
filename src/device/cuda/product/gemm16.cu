/* Products of bf16 and fp16 matrices with fp32 sums, by mma.sync.m16n8k16.
 *
 * A block owns a tile of c and goes over k in steps of 32. While it multiplies a step, cp.async
 * brings the next two from memory. Operands lie in shared memory as they do in memory, rows of k or
 * columns of k; ldmatrix transposes on the way to registers where the order is the other one.
 *
 * An element of c is one chain of multiply-adds over rising k, the same for both sizes of tiles,
 * for each way to load, and whatever the other rows are. */
#include "device/cuda/kernel.h"

#include "device/cuda/product/gemm_arguments.h"
#include "device/cuda/product/gemm_common.h"

/* The place of a piece of 8 elements in a tile with COLUMNS elements a row. ldmatrix reads a column
 * of 8 such pieces at once, and this puts them into different banks. */
template <int COLUMNS> DEVICE int piece_at(int row, int piece) {
    static_assert(COLUMNS == 32 || COLUMNS % 64 == 0, "a row is half of the banks or all of them");
    int place = COLUMNS == 32 ? piece ^ (row >> 1 & 3) : piece ^ (row & 7);
    return row * COLUMNS + place * 8;
}

/* What a thread loads of a tile of ROWS x COLUMNS elements: the same piece of every ROW_STEPth row
 * from its first one on. */
template <int COLUMNS> struct share {
    enum { PIECES = COLUMNS / 8, ROW_STEP = GEMM_THREADS16 / PIECES };
};

template <int COLUMNS>
DEVICE const uint16_t *own_piece(const void *from, int64_t stride, int64_t row, int64_t column) {
    int thread = (int)threadIdx.x, pieces = share<COLUMNS>::PIECES;
    return (const uint16_t *)from + (row + thread / pieces) * stride + column + thread % pieces * 8;
}

/* Starts to load a tile of which `rows` x `columns` elements are there; the others become zeros.
 * `from` is the thread's first piece. */
template <int ROWS, int COLUMNS>
DEVICE void load_tile(uint16_t *to, const uint16_t *from, int64_t stride, int rows, int columns,
                      bool wide) {
    enum { PIECES = share<COLUMNS>::PIECES, ROW_STEP = share<COLUMNS>::ROW_STEP };
    static_assert(ROW_STEP % 8 == 0 && ROWS % ROW_STEP == 0, "a share has one place in each row");
    int first = (int)threadIdx.x / PIECES, piece = (int)threadIdx.x % PIECES;
    int most = columns - piece * 8;
    most = most < 0 ? 0 : most > 8 ? 8 : most;
    to += piece_at<COLUMNS>(first, piece);
#pragma unroll
    for (int step = 0; step < ROWS / ROW_STEP; step++) {
        int count = first + step * ROW_STEP < rows ? most : 0;
        const uint16_t *source = from + step * ROW_STEP * stride;
        if (wide)
            copy_async(to + step * ROW_STEP * COLUMNS, source, count * 2);
        else
            gemm_copy_elements(to + step * ROW_STEP * COLUMNS, source, count);
    }
}

/* The fragment of 16 rows of a from m on, 16 columns from k on. BY_K: the tile's rows are k. */
template <bool BY_K, int SIDE>
DEVICE void load_a(uint32_t fragment[4], const uint16_t *tile, int m, int k) {
    int matrix = (int)threadIdx.x % 32 / 8, in = (int)threadIdx.x % 8;
    int low = matrix & 1, high = matrix >> 1;
    if (BY_K)
        load_matrices_transposed(fragment, tile + piece_at<SIDE>(k + in + 8 * high, m / 8 + low));
    else
        load_matrices(fragment, tile + piece_at<GEMM_STEP16>(m + in + 8 * low, k / 8 + high));
}

/* Two fragments of 16 rows of b from k on, 8 columns from n on, and the next 8. */
template <bool BY_K, int SIDE>
DEVICE void load_b(uint32_t fragment[4], const uint16_t *tile, int n, int k) {
    int matrix = (int)threadIdx.x % 32 / 8, in = (int)threadIdx.x % 8;
    int low = matrix & 1, high = matrix >> 1;
    if (BY_K)
        load_matrices_transposed(fragment, tile + piece_at<SIDE>(k + in + 8 * low, n / 8 + high));
    else
        load_matrices(fragment, tile + piece_at<GEMM_STEP16>(n + in + 8 * high, k / 8 + low));
}

DEVICE void multiply(bf16, float sums[4], const uint32_t a[4], const uint32_t b[2]) {
    mma_bf16(sums, a, b, sums);
}

DEVICE void multiply(fp16, float sums[4], const uint32_t a[4], const uint32_t b[2]) {
    mma_fp16(sums, a, b, sums);
}

/* BY_K: rows of the operand are k. A warp owns a quarter of the block's tile. */
template <bool A, bool B, int TILE_SIDE> struct gemm_shape {
    static const bool A_BY_K = A, B_BY_K = B;
    enum {
        SIDE = TILE_SIDE,
        HALF = SIDE / 2,
        ROWS = HALF / 16, /* of fragments of a warp's sums */
        COLUMNS = HALF / 8,
        A_ROWS = A ? GEMM_STEP16 : SIDE,
        A_COLUMNS = A ? SIDE : GEMM_STEP16,
        B_ROWS = B ? GEMM_STEP16 : SIDE,
        B_COLUMNS = B ? SIDE : GEMM_STEP16,
        TILE = SIDE * GEMM_STEP16
    };
    float sums[ROWS][COLUMNS][4];
};

/* The place of a pair of sums among 16 rows of PAIRS: spread over the banks for lanes that hold
 * fragments as for lanes that hold a row. */
template <int PAIRS> DEVICE int sum_at(int row, int pair) {
    return row * PAIRS + (pair ^ (row & 3) * 4);
}

template <typename S> DEVICE void clear(S &s) {
#pragma unroll
    for (int i = 0; i < S::ROWS; i++)
#pragma unroll
        for (int j = 0; j < S::COLUMNS; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) s.sums[i][j][e] = 0.0f;
}

template <typename T, typename S>
DEVICE void multiply_step(S &s, const uint16_t *tile_a, const uint16_t *tile_b, int warp_m,
                          int warp_n) {
#pragma unroll
    for (int k = 0; k < GEMM_STEP16; k += 16) {
        uint32_t a[S::ROWS][4], b[S::COLUMNS / 2][4];
#pragma unroll
        for (int i = 0; i < S::ROWS; i++)
            load_a<S::A_BY_K, S::SIDE>(a[i], tile_a, warp_m + i * 16, k);
#pragma unroll
        for (int j = 0; j < S::COLUMNS / 2; j++)
            load_b<S::B_BY_K, S::SIDE>(b[j], tile_b, warp_n + j * 16, k);
#pragma unroll
        for (int i = 0; i < S::ROWS; i++)
#pragma unroll
            for (int j = 0; j < S::COLUMNS; j++)
                multiply(T(), s.sums[i][j], a[i], b[j / 2] + j % 2 * 2);
    }
}

/* Writes 16 rows of a warp's sums, from `row` on. A lane writes two neighbours of a row. */
template <typename T, int PAIRS>
DEVICE void write_rows(const wide_of<float, 2> *from, const gemm_arguments &a,
                       const gemm_tile &tile, int64_t row, int64_t column, const float bias[2],
                       bool add) {
    bool both = column + 1 < a.n;
    if (column >= a.n) return;
    for (int r = (int)threadIdx.x % 32 / PAIRS; r < 16 && row + r < tile.m_end; r += 32 / PAIRS) {
        wide_of<float, 2> pair = from[sum_at<PAIRS>(r, (int)threadIdx.x % PAIRS)];
        float value[2] = {pair.at[0] * tile.factor + bias[0], pair.at[1] * tile.factor + bias[1]};
        int64_t at = tile.c_offset + gemm_row_of_c(a, row + r) * a.c_stride + column;
        if (a.c_fp32)
            gemm_write<fp32>((float *)a.c + at, value, both, a.c_wide, add);
        else
            gemm_write<T>((typename T::stored *)a.c + at, value, both, a.c_wide, add);
    }
}

/* Writes the sums to c through shared memory, so that a warp writes whole rows of its part. They
 * lie where the step lay that was multiplied last. */
template <typename T, typename S>
DEVICE void write_sums(const S &s, const gemm_arguments &a, const gemm_tile &tile, int warp_m,
                       int warp_n, bool add, uint16_t *step) {
    enum { PAIRS = S::HALF / 2 };
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    wide_of<float, 2> *own = (wide_of<float, 2> *)(void *)step + warp * 16 * PAIRS;
    int64_t column = tile.n + warp_n + lane % PAIRS * 2;
    float bias[2] = {0.0f, 0.0f};
#pragma unroll
    for (int e = 0; e < 2; e++)
        if (a.bias != NULL && column + e < a.n)
            bias[e] = T::load(((const typename T::stored *)a.bias)[column + e]);
    __syncthreads(); /* nobody reads the step any more */
#pragma unroll
    for (int i = 0; i < S::ROWS; i++) {
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int j = 0; j < S::COLUMNS; j++) {
                wide_of<float, 2> pair = {{s.sums[i][j][2 * half], s.sums[i][j][2 * half + 1]}};
                own[sum_at<PAIRS>(lane / 4 + 8 * half, j * 4 + lane % 4)] = pair;
            }
        __syncwarp();
        write_rows<T, PAIRS>(own, a, tile, tile.m + warp_m + i * 16, column, bias, add);
        __syncwarp();
    }
}

template <typename T, typename S> DEVICE void gemm16(const gemm_arguments &a, uint16_t *shared) {
    const int STEP = GEMM_STEP16, STAGES = GEMM_STAGES16;
    gemm_tile tile;
    if (!gemm_find_tile(a, S::SIDE, &tile)) return;
    const uint16_t *from_a = own_piece<S::A_COLUMNS>(
        a.a, a.a_stride, S::A_BY_K ? tile.k_begin : tile.m, S::A_BY_K ? tile.m : tile.k_begin);
    const uint16_t *from_b = own_piece<S::B_COLUMNS>(
        a.b, a.b_stride, S::B_BY_K ? tile.k_begin : tile.n, S::B_BY_K ? tile.n : tile.k_begin);
    int64_t next_a = S::A_BY_K ? STEP * a.a_stride : STEP;
    int64_t next_b = S::B_BY_K ? STEP * a.b_stride : STEP;
    int rows = gemm_at_most(tile.m_end - tile.m, S::SIDE);
    int columns = gemm_at_most(a.n - tile.n, S::SIDE);
    int warp = (int)threadIdx.x / 32, warp_m = warp / 2 * S::HALF, warp_n = warp % 2 * S::HALF;
    int steps = gemm_steps(tile, STEP);
    int chunk = gemm_chunk_steps(a, STEP), left = chunk;
    bool add = a.accumulate;
    S s;
    clear(s);
    /* Where there is no step, an empty group of copies is closed, so that the number of groups says
     * which steps are there. */
    auto load = [&](int step) {
        if (step < steps) {
            uint16_t *to = shared + step % STAGES * 2 * S::TILE;
            int terms = gemm_at_most(tile.k_end - tile.k_begin - (int64_t)step * STEP, STEP);
            load_tile<S::A_ROWS, S::A_COLUMNS>(to, from_a + step * next_a, a.a_stride,
                                               S::A_BY_K ? terms : rows, S::A_BY_K ? rows : terms,
                                               a.a_wide);
            load_tile<S::B_ROWS, S::B_COLUMNS>(to + S::TILE, from_b + step * next_b, a.b_stride,
                                               S::B_BY_K ? terms : columns,
                                               S::B_BY_K ? columns : terms, a.b_wide);
        }
        copy_commit();
    };
#pragma unroll 1
    for (int step = 0; step < STAGES - 1; step++) load(step);
    for (int step = 0; step < steps; step++) {
        copy_wait<STAGES - 2>();
        __syncthreads(); /* the step is there, and nobody reads the one before it any more */
        load(step + STAGES - 1);
        uint16_t *there = shared + step % STAGES * 2 * S::TILE;
        multiply_step<T>(s, there, there + S::TILE, warp_m, warp_n);
        if (--left > 0 && step + 1 < steps) continue;
        write_sums<T>(s, a, tile, warp_m, warp_n, add, there);
        clear(s);
        add = true;
        left = chunk;
    }
}

#define GEMM16(name, type, a_by_k, b_by_k, side)                                                   \
    KERNEL(name, gemm_arguments, GEMM_THREADS16) {                                                 \
        SHARED_DYNAMIC(uint16_t, shared);                                                          \
        gemm16<type, gemm_shape<a_by_k, b_by_k, side>>(a, shared);                                 \
    }

GEMM16(gemm_nt_bf16, bf16, false, false, GEMM_LARGE)
GEMM16(gemm_nn_bf16, bf16, false, true, GEMM_LARGE)
GEMM16(gemm_tn_bf16, bf16, true, true, GEMM_LARGE)
GEMM16(gemm_nt_fp16, fp16, false, false, GEMM_LARGE)
GEMM16(gemm_nn_fp16, fp16, false, true, GEMM_LARGE)
GEMM16(gemm_tn_fp16, fp16, true, true, GEMM_LARGE)
GEMM16(gemm_nt_bf16_small, bf16, false, false, GEMM_SMALL)
GEMM16(gemm_nn_bf16_small, bf16, false, true, GEMM_SMALL)
GEMM16(gemm_tn_bf16_small, bf16, true, true, GEMM_SMALL)
GEMM16(gemm_nt_fp16_small, fp16, false, false, GEMM_SMALL)
GEMM16(gemm_nn_fp16_small, fp16, false, true, GEMM_SMALL)
GEMM16(gemm_tn_fp16_small, fp16, true, true, GEMM_SMALL)
