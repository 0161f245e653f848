/* Attention of 16-bit values: a block owns 64 queries of a head and goes over the keys in tiles,
 * with running statistics (FlashAttention-2, Dao 2023). The next tile is on its way while one is
 * worked on. */
#include "device/cuda/attention/attention_mma.h"
#include "device/cuda/attention/attention_pairs.h"

namespace {

template <int WIDTH> struct forward_memory {
    enum { ROWS = ATTENTION_ROWS, COLUMNS = ATTENTION_COLUMNS(WIDTH) };
    uint16_t queries[ROWS * WIDTH], keys[2][COLUMNS * WIDTH], values[2][COLUMNS * WIDTH];
    uint4 random[4][32];
    int32_t segments[2][COLUMNS];
};

/* Of this lane's two rows. */
struct forward_rows {
    float most[2], sum[2];
};

template <int WIDTH>
DEVICE void forward_load(const attention_arguments &a, const attention_block &block,
                         const attention_tiles &tiles, forward_memory<WIDTH> *memory, int buffer) {
    constexpr int COLUMNS = forward_memory<WIDTH>::COLUMNS;
    int32_t first = tiles.next * COLUMNS, kv = block.head / a.group;
    tile_load<WIDTH, COLUMNS>(head_rows_of(a, a.k, block.sequence, kv), first,
                              memory->keys[buffer]);
    tile_load<WIDTH, COLUMNS>(head_rows_of(a, a.v, block.sequence, kv), first,
                              memory->values[buffer]);
    if (a.segments != NULL && threadIdx.x < COLUMNS)
        memory->segments[buffer][threadIdx.x] =
            attention_segment(a, block.sequence, first + (int32_t)threadIdx.x);
}

/* Turns scores into probabilities relative to the largest so far, and what was summed with them. */
template <int WIDTH, int COLUMNS>
DEVICE void forward_softmax(float factor, float scores[COLUMNS / 8][4], forward_rows *rows,
                            float out[WIDTH / 8][4]) {
    float most[2] = {rows->most[0], rows->most[1]}, alpha[2], shift[2];
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) most[i / 2] = fmaxf(most[i / 2], scores[n][i]);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        most[r] = attention_row_most(most[r]);
        alpha[r] = attention_exp2((rows->most[r] - most[r]) * factor);
        shift[r] = most[r] * factor;
        rows->most[r] = most[r], rows->sum[r] *= alpha[r];
    }
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            scores[n][i] = attention_exp2(fmaf(scores[n][i], factor, -shift[i / 2]));
            rows->sum[i / 2] += scores[n][i];
        }
#pragma unroll
    for (int n = 0; n < WIDTH / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) out[n][i] *= alpha[i / 2];
}

template <typename T, int WIDTH>
DEVICE void forward_tile(const attention_arguments &a, forward_memory<WIDTH> *memory, int buffer,
                         const attention_place &at, bool hides, bool drops, uint64_t key,
                         forward_rows *rows, float out[WIDTH / 8][4]) {
    constexpr int COLUMNS = forward_memory<WIDTH>::COLUMNS;
    float scores[COLUMNS / 8][4];
    uint32_t p[COLUMNS / 16][4];
    tile_scores<T, WIDTH, COLUMNS>(memory->queries, (int)(threadIdx.x / 32) * 16,
                                   memory->keys[buffer], scores);
    if (a.softcap > 0) attention_cap_all<COLUMNS>(a, scores);
    if (hides) attention_hide<COLUMNS, false>(a, at, scores);
    forward_softmax<WIDTH, COLUMNS>(attention_scale(a) * ATTENTION_LOG2_E, scores, rows, out);
#pragma unroll
    for (int k = 0; k < COLUMNS / 16; k++) {
        if (drops) {
            float factors[2][4];
            attention_factors<false>(a, at, key, 2 * k, factors);
#pragma unroll
            for (int i = 0; i < 8; i++) scores[2 * k + i / 4][i % 4] *= factors[i / 4][i % 4];
        }
        tile_pairs<T>(scores[2 * k], scores[2 * k + 1], p[k]);
    }
    tile_add<T, WIDTH, COLUMNS, WIDTH>(p, memory->values[buffer], 0, out);
}

template <typename T, int WIDTH>
DEVICE void forward_finish(const attention_arguments &a, const attention_block &block,
                           forward_memory<WIDTH> *memory, int32_t first, forward_rows *rows,
                           const float out[WIDTH / 8][4]) {
    int lane = (int)(threadIdx.x % 32), row = (int)(threadIdx.x / 32) * 16;
    float part[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float sum = attention_row_sum(rows->sum[r]);
        int32_t at = first + row + lane / 4 + r * 8;
        part[r] = 1.0f / sum;
        if (a.log_sums == NULL || lane % 4 != 0 || at >= a.length) continue;
        a.log_sums[block.head * a.log_sum_stride + (int64_t)block.sequence * a.length + at] =
            rows->most[r] * attention_scale(a) + logf(sum);
    }
    tile_write<T, WIDTH, WIDTH>(out, part[0], part[1], memory->queries, row, 0,
                                head_rows_of(a, a.y, block.sequence, block.head), first + row);
}

template <typename T, int WIDTH> DEVICE void forward(const attention_arguments &a) {
    constexpr int ROWS = forward_memory<WIDTH>::ROWS, COLUMNS = forward_memory<WIDTH>::COLUMNS;
    static_assert(sizeof(forward_memory<WIDTH>) == ATTENTION_FORWARD_BYTES(WIDTH), "");
    SHARED_DYNAMIC(forward_memory<WIDTH>, memory);
    attention_block block = attention_block_of(a, a.heads, ROWS, true);
    attention_part queries = attention_part_at(a, block.tile * ROWS, ROWS);
    attention_tiles tiles =
        attention_tiles_of(a, block.sequence, queries, attention_keys_of(a, queries), COLUMNS);
    int warp = (int)(threadIdx.x / 32), lane = (int)(threadIdx.x % 32), buffer = 0;
    bool drops = attention_drops(a);
    uint64_t key = drops ? attention_random_key(a) : 0;
    attention_place at = {queries.first + warp * 16,
                          0,
                          {0, 0},
                          NULL,
                          (uint32_t)(block.sequence * a.heads + block.head),
                          memory->random[warp]};
    for (int r = 0; r < 2; r++)
        at.row_segments[r] = attention_segment(a, block.sequence, at.row + lane / 4 + r * 8);
    forward_rows rows = {{ATTENTION_NOTHING, ATTENTION_NOTHING}, {0.0f, 0.0f}};
    float out[WIDTH / 8][4];
#pragma unroll
    for (int n = 0; n < WIDTH / 8; n++)
        for (int i = 0; i < 4; i++) out[n][i] = 0.0f;
    tile_load<WIDTH, ROWS>(head_rows_of(a, a.q, block.sequence, block.head), queries.first,
                           memory->queries);
    if (tiles.next < tiles.end) forward_load(a, block, tiles, memory, buffer);
    copy_commit();
    while (tiles.next < tiles.end) {
        bool hides = attention_hides<false>(a, tiles, queries);
        at.column = tiles.next * COLUMNS, at.segments = memory->segments[buffer];
        attention_seek(a, &tiles, tiles.next + 1);
        if (tiles.next < tiles.end) forward_load(a, block, tiles, memory, buffer ^ 1);
        copy_commit();
        copy_wait<1>();
        __syncthreads();
        forward_tile<T, WIDTH>(a, memory, buffer, at, hides, drops, key, &rows, out);
        __syncthreads(); /* the next tile but one comes to this one's place */
        buffer ^= 1;
    }
    forward_finish<T, WIDTH>(a, block, memory, queries.first, &rows, out);
}

} // namespace

#define FORWARD(type, width)                                                                       \
    KERNEL(attention_forward_##type##_##width, attention_arguments, ATTENTION_THREADS) {           \
        forward<pairs_##type, width>(a);                                                           \
    }
FORWARD(bf16, 64)
FORWARD(bf16, 128)
FORWARD(bf16, 256)
FORWARD(fp16, 64)
FORWARD(fp16, 128)
FORWARD(fp16, 256)
