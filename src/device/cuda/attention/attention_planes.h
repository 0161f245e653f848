/* Tiles of fp32 values in shared memory ("planes") and the products of attention on them by plain
 * multiply-adds. Thread (x, y) of 16 x 16 has rows y + 16 i and columns x + 16 j of a square of
 * scores, and rows y + 16 i of what is multiplied with it. */
#ifndef CUDA_ATTENTION_PLANES_H
#define CUDA_ATTENTION_PLANES_H

#include "device/cuda/attention/attention_pairs.h"

/* Rows of a plane begin in different banks: their stride is odd. */
template <int WIDTH_, int TILE_> struct plane_shape {
    enum { WIDTH = WIDTH_, TILE = TILE_, EACH = TILE / 16, SUMS = WIDTH / 16 };
    enum { STRIDE = WIDTH + 1, PLANE = TILE * STRIDE, SQUARE = TILE + 1 };
};

DEVICE int thread_x(void) {
    return (int)(threadIdx.x % 16);
}

DEVICE int thread_y(void) {
    return (int)(threadIdx.x / 16);
}

/* Rows in memory: of a head in a sequence, or of a head in a table. */
template <typename T> struct plane_rows {
    typename T::stored *data;
    int64_t stride;
    int32_t rows, width;
};

template <typename T>
DEVICE plane_rows<T> plane_rows_of(const attention_arguments &a, const attention_operand &operand,
                                   int32_t sequence, int32_t head) {
    int64_t first = (int64_t)sequence * a.length * operand.stride + (int64_t)head * a.head_dim;
    return {(typename T::stored *)operand.data + first, operand.stride, a.length, a.head_dim};
}

template <typename T> DEVICE float plane_value(typename T::stored value) {
    return T::load(value);
}

#ifdef __CUDACC__
/* The same by one instruction: with base_half_to_float, registers do not suffice. */
template <> __device__ __forceinline__ float plane_value<fp16>(uint16_t value) {
    float out;
    asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(value));
    return out;
}
#endif

/* Rows [first, first + COUNT); zeros beyond the last one. */
template <typename T, typename S, int COUNT>
DEVICE void plane_load(const plane_rows<T> &from, int32_t first, float *plane) {
    for (int r = thread_y(); r < COUNT; r += 16)
#pragma unroll(sizeof(typename T::stored) == 2 ? 2 : 4)
        for (int c = thread_x(); c < from.width; c += 16)
            plane[r * S::STRIDE + c] =
                first + r < from.rows ? plane_value<T>(from.data[(first + r) * from.stride + c])
                                      : 0.0f;
}

/* products[i][j] = row y + 16 i of one plane times row x + 16 j of another. */
template <typename S, int ROWS, int COLUMNS>
DEVICE void plane_multiply(int width, const float *rows, const float *columns,
                           float products[ROWS / 16][COLUMNS / 16]) {
#pragma unroll
    for (int i = 0; i < ROWS / 16; i++)
#pragma unroll
        for (int j = 0; j < COLUMNS / 16; j++) products[i][j] = 0.0f;
    for (int k = 0; k < width; k++) {
        float row[ROWS / 16], column[COLUMNS / 16];
#pragma unroll
        for (int i = 0; i < ROWS / 16; i++) row[i] = rows[(thread_y() + 16 * i) * S::STRIDE + k];
#pragma unroll
        for (int j = 0; j < COLUMNS / 16; j++)
            column[j] = columns[(thread_x() + 16 * j) * S::STRIDE + k];
#pragma unroll
        for (int i = 0; i < ROWS / 16; i++)
#pragma unroll
            for (int j = 0; j < COLUMNS / 16; j++)
                products[i][j] = fmaf(row[i], column[j], products[i][j]);
    }
}

/* sums += square plane; the square has COUNT columns, the plane as many rows. */
template <typename S, int COUNT>
DEVICE void plane_add(int width, const float *square, const float *plane,
                      float sums[S::EACH][S::SUMS]) {
    for (int k = 0; k < COUNT; k++)
#pragma unroll
        for (int c = 0; c < S::SUMS; c++) {
            if (thread_x() + 16 * c >= width) continue;
            float value = plane[k * S::STRIDE + thread_x() + 16 * c];
#pragma unroll
            for (int i = 0; i < S::EACH; i++)
                sums[i][c] =
                    fmaf(square[(thread_y() + 16 * i) * (COUNT + 1) + k], value, sums[i][c]);
        }
}

template <typename S> DEVICE void plane_clear(float sums[S::EACH][S::SUMS]) {
#pragma unroll
    for (int i = 0; i < S::EACH; i++)
#pragma unroll
        for (int c = 0; c < S::SUMS; c++) sums[i][c] = 0.0f;
}

/* Writes rows first + y + 16 i of a head. */
template <typename T, typename S>
DEVICE void plane_store(const plane_rows<T> &to, int32_t first, const float factors[S::EACH],
                        const float sums[S::EACH][S::SUMS]) {
#pragma unroll
    for (int i = 0; i < S::EACH; i++) {
        int32_t row = first + thread_y() + 16 * i;
        if (row >= to.rows) continue;
#pragma unroll
        for (int c = 0; c < S::SUMS; c++)
            if (thread_x() + 16 * c < to.width)
                to.data[row * to.stride + thread_x() + 16 * c] = T::store(sums[i][c] * factors[i]);
    }
}

/* Over the 16 threads that share rows. */
DEVICE float plane_row_most(float value) {
    for (int lanes = 8; lanes > 0; lanes /= 2)
        value = fmaxf(value, __shfl_xor_sync(~0u, value, lanes));
    return value;
}

DEVICE float plane_row_sum(float value) {
    for (int lanes = 8; lanes > 0; lanes /= 2) value += __shfl_xor_sync(~0u, value, lanes);
    return value;
}

DEVICE bool pair_seen(const attention_arguments &a, int32_t sequence, int32_t query, int32_t key) {
    if (query >= a.length || key >= a.length || !attention_near(a, query, key)) return false;
    return attention_segment(a, sequence, query) == attention_segment(a, sequence, key);
}

/* The factor of dropout for one pair. */
DEVICE float pair_factor(const attention_arguments &a, uint64_t random, uint32_t head,
                         int32_t query, int32_t key) {
    base_random4 r = attention_random(random, head, query, key / 8);
    uint32_t low = key % 4 < 2 ? r.v[0] : r.v[1], high = key % 4 < 2 ? r.v[2] : r.v[3];
    return attention_dropped(a, (key % 8 < 4 ? low : high) >> key % 2 * 16);
}

/* P D and dS of a pair, from its score and dy v^T; both 0 for what is not seen. */
struct pair_values {
    float p, ds;
};

DEVICE pair_values pair_gradient(const attention_arguments &a, int32_t sequence, int32_t head,
                                 int32_t query, int32_t key, bool drops, uint64_t random,
                                 float product, float dp) {
    if (!pair_seen(a, sequence, query, key)) return {0.0f, 0.0f};
    int64_t place = (int64_t)sequence * a.length + query;
    float log_sum = a.log_sums[head * a.log_sum_stride + place], kept = 1.0f;
    float score = attention_cap(a, product), factor = attention_scale(a) * ATTENTION_LOG2_E;
    if (drops) kept = pair_factor(a, random, (uint32_t)(sequence * a.heads + head), query, key);
    float p = attention_exp2(fmaf(score, factor, -ATTENTION_LOG2_E * log_sum));
    float ds = p * (dp * kept - a.delta[head * a.rows + place]);
    if (a.softcap > 0) ds *= attention_slope(a, score);
    return {p * kept, ds};
}

#endif
