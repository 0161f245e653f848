/* The gradient of a table of words without atomics: tokens are sorted by word, each word's in the
 * order of their rows, and one block adds up all tokens of a word. The sort is by digits, the
 * lowest first; one thread has all tokens of a digit in a tile, so their order stays. */
#include "device/cuda/vector/embedding_arguments.h"
#include "device/cuda/vector/row_pieces.h"

/* The digits of a tile's tokens; ORDER_TILE, which is none, beyond the last. */
DEVICE int32_t read_digit(const order_arguments &a, uint4 *digits) {
    int64_t i = (int64_t)blockIdx.x * ORDER_TILE + threadIdx.x;
    int32_t token = 0;
    uint32_t digit = ORDER_TILE;
    if (i < a.rows) {
        token = a.before ? a.before[i] : (int32_t)i;
        uint32_t word = (uint32_t)(a.first + a.ids[token * a.ids_stride]);
        digit = word >> a.shift & (ORDER_TILE - 1);
    }
    ((uint32_t *)digits)[threadIdx.x] = digit;
    return token;
}

KERNEL(order_count, order_arguments, ORDER_TILE) {
    SHARED(uint4, digits, ORDER_TILE / 4);
    read_digit(a, digits);
    __syncthreads();
    int32_t count = 0;
    for (int i = 0; i < ORDER_TILE / 4; i++) {
        uint4 four = digits[i];
        count += four.x == threadIdx.x;
        count += four.y == threadIdx.x;
        count += four.z == threadIdx.x;
        count += four.w == threadIdx.x;
    }
    a.counts[(int64_t)blockIdx.x * ORDER_TILE + threadIdx.x] = count;
}

/* One block: counts become places, smaller digits first, then earlier tiles. */
KERNEL(order_places, order_arguments, ORDER_TILE) {
    SHARED(int32_t, sums, ORDER_TILE);
    int32_t *counts = a.counts + threadIdx.x, total = 0;
    for (int32_t t = 0; t < a.tiles; t++) total += counts[(int64_t)t * ORDER_TILE];
    sums[threadIdx.x] = total;
    for (uint32_t apart = 1; apart < ORDER_TILE; apart *= 2) {
        __syncthreads();
        int32_t lower = threadIdx.x >= apart ? sums[threadIdx.x - apart] : 0;
        __syncthreads();
        sums[threadIdx.x] += lower;
    }
    int32_t place = sums[threadIdx.x] - total;
    for (int32_t t = 0; t < a.tiles; t++) {
        int32_t count = counts[(int64_t)t * ORDER_TILE];
        counts[(int64_t)t * ORDER_TILE] = place;
        place += count;
    }
}

KERNEL(order_tokens, order_arguments, ORDER_TILE) {
    SHARED(uint4, digits, ORDER_TILE / 4);
    SHARED(int32_t, tokens, ORDER_TILE);
    tokens[threadIdx.x] = read_digit(a, digits);
    __syncthreads();
    int32_t *to = a.order + a.counts[(int64_t)blockIdx.x * ORDER_TILE + threadIdx.x];
    for (int i = 0; i < ORDER_TILE / 4; i++) {
        uint4 four = digits[i];
        if (four.x == threadIdx.x) *to++ = tokens[4 * i];
        if (four.y == threadIdx.x) *to++ = tokens[4 * i + 1];
        if (four.z == threadIdx.x) *to++ = tokens[4 * i + 2];
        if (four.w == threadIdx.x) *to++ = tokens[4 * i + 3];
    }
}

/* Blocks of positions that do not begin a word have nothing to do. The others walk through the
 * word's tokens; AHEAD rows are on their way while earlier ones are added. */
template <class type> DEVICE void table_sums(const table_sums_arguments &a) {
    enum { AHEAD = 8 };
    typedef typename type::stored element;
    SHARED(int32_t, tokens, EMBEDDING_THREADS);
    int64_t position = blockIdx.x;
    int32_t id = a.ids[a.order[position] * a.ids_stride];
    if (position > 0 && a.ids[a.order[position - 1] * a.ids_stride] == id) return;
    if (a.padded && a.first + id == a.padding) return;
    int64_t at = ((int64_t)blockIdx.y * EMBEDDING_THREADS + threadIdx.x) * ROW_PIECE;
    int count = piece_count(at, a.columns); /* may be none: the thread still fetches tokens */
    const element *dy = (const element *)a.dy + at;
    float *dw = a.dw + ((int64_t)a.first + id) * a.dw_stride + at, sums[ROW_PIECE] = {0};
    if (a.add) read_piece<fp32>(dw, count, a.wide, sums);
    do {
        int64_t mine = position + threadIdx.x;
        int32_t token = -1;
        if (mine < a.rows) token = a.order[mine];
        if (token >= 0 && a.ids[token * a.ids_stride] != id) token = -1;
        __syncthreads(); /* the last ones were used */
        tokens[threadIdx.x] = token;
        __syncthreads();
        for (int t = 0; t < EMBEDDING_THREADS && tokens[t] >= 0; t += AHEAD) {
            float rows[AHEAD][ROW_PIECE];
#pragma unroll
            for (int i = 0; i < AHEAD; i++)
                if (tokens[t + i] >= 0)
                    read_piece<type>(dy + tokens[t + i] * a.dy_stride, count, a.wide, rows[i]);
#pragma unroll
            for (int i = 0; i < AHEAD; i++)
                if (tokens[t + i] >= 0)
#pragma unroll
                    for (int c = 0; c < ROW_PIECE; c++) sums[c] += rows[i][c];
        }
        position += EMBEDDING_THREADS;
    } while (tokens[EMBEDDING_THREADS - 1] >= 0);
    write_piece<fp32>(dw, count, a.wide, sums);
}

KERNEL(table_sums_fp32, table_sums_arguments, EMBEDDING_THREADS) {
    table_sums<fp32>(a);
}

KERNEL(table_sums_bf16, table_sums_arguments, EMBEDDING_THREADS) {
    table_sums<bf16>(a);
}

KERNEL(table_sums_fp16, table_sums_arguments, EMBEDDING_THREADS) {
    table_sums<fp16>(a);
}
