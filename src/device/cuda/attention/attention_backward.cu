/* Gradients of attention of 16-bit values. With S = q k^T * scale, P = exp(S - log_sum), and D the
 * factors of dropout (all 1 without):
 *   dv = (P D)^T dy;  dP = (dy v^T) D;  dS = P (dP - rowsum(dy y)) * scale;  dq = dS k;
 *   dk = dS^T q
 * (FlashAttention-2, Dao 2023.) With a soft cap c, S = c tanh(q k^T * scale / c), and dS is
 * multiplied by 1 - (S / c)^2. The scale is left to the end, for the range of 16-bit dS.
 *
 * Two kernels of one form, each with an order of its own to add in, and no atomics: a block owns
 * keys of a kv head and goes over its query heads and their queries (dk, dv), or owns queries and
 * goes over their keys (dq). */
#include "device/cuda/attention/attention_mma.h"
#include "device/cuda/attention/attention_pairs.h"

namespace {

/* own: k, v or q, dy; other: q, dy or k, v. */
template <int WIDTH> struct backward_memory {
    enum { ROWS = ATTENTION_BACKWARD_ROWS(WIDTH), COLUMNS = ATTENTION_BACKWARD_COLUMNS };
    enum { PARTS = 64 / ROWS, SUMS = WIDTH / PARTS };
    uint16_t own[2][ROWS * WIDTH], other[2][2][COLUMNS * WIDTH];
    uint4 random[4][32];
    float log_sums[2][COLUMNS], delta[2][COLUMNS]; /* of other queries */
    int32_t segments[2][COLUMNS];
};

/* What a block goes over: tiles of each of its query heads. */
struct backward_walk {
    attention_tiles tiles;
    int32_t first, head, heads;
};

DEVICE bool backward_ends(const backward_walk &w) {
    return w.head == w.heads;
}

DEVICE void backward_step(const attention_arguments &a, backward_walk *w) {
    attention_seek(a, &w->tiles, w->tiles.next + 1);
    if (w->tiles.next < w->tiles.end) return;
    attention_seek(a, &w->tiles, w->first);
    w->head++;
}

/* Where the statistics of a query are. */
DEVICE int64_t backward_query(const attention_arguments &a, int64_t stride, int32_t sequence,
                              int32_t head, int32_t row) {
    return head * stride + (int64_t)sequence * a.length + row;
}

template <int WIDTH, bool KEYS>
DEVICE void backward_load(const attention_arguments &a, const attention_block &block,
                          const backward_walk &walk, backward_memory<WIDTH> *memory, int buffer) {
    constexpr int COLUMNS = backward_memory<WIDTH>::COLUMNS;
    int32_t first = walk.tiles.next * COLUMNS, sequence = block.sequence;
    int32_t head = KEYS ? walk.head : walk.head / a.group;
    tile_load<WIDTH, COLUMNS>(head_rows_of(a, KEYS ? a.q : a.k, sequence, head), first,
                              memory->other[buffer][0]);
    tile_load<WIDTH, COLUMNS>(head_rows_of(a, KEYS ? a.dy : a.v, sequence, head), first,
                              memory->other[buffer][1]);
    int32_t c = (int32_t)threadIdx.x, row = first + c;
    if (c >= COLUMNS) return;
    if (a.segments != NULL) memory->segments[buffer][c] = attention_segment(a, sequence, row);
    if (!KEYS) return;
    bool real = row < a.length;
    memory->log_sums[buffer][c] =
        real ? a.log_sums[backward_query(a, a.log_sum_stride, sequence, head, row)] : 0.0f;
    memory->delta[buffer][c] =
        real ? a.delta[backward_query(a, a.rows, sequence, head, row)] : 0.0f;
}

/* Statistics of queries: of this lane's rows, or of the columns. */
struct backward_queries {
    float row_log_sums[2], row_delta[2];
    const float *log_sums, *delta;
};

/* From scores and dP: P D and dS, as the first operands of the products that follow. */
template <typename T, int COLUMNS, bool KEYS>
DEVICE void backward_pairs(const attention_arguments &a, const attention_place &at,
                           const backward_queries &queries, bool drops, uint64_t key,
                           float scores[COLUMNS / 8][4], float dp[COLUMNS / 8][4],
                           uint32_t p[COLUMNS / 16][4], uint32_t ds[COLUMNS / 16][4]) {
    float factor = attention_scale(a) * ATTENTION_LOG2_E;
    int in = (int)(threadIdx.x % 4) * 2;
#pragma unroll
    for (int k = 0; k < COLUMNS / 16; k++) {
        float factors[2][4];
        if (drops) attention_factors<KEYS>(a, at, key, 2 * k, factors);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            int n = 2 * k + i / 4, c = n * 8 + in + i % 2, r = i % 4 / 2;
            float score = scores[n][i % 4], dropped = dp[n][i % 4];
            float log_sum = KEYS ? queries.log_sums[c] : queries.row_log_sums[r];
            float probability = attention_exp2(fmaf(score, factor, -ATTENTION_LOG2_E * log_sum));
            if (drops) dropped *= factors[i / 4][i % 4];
            float slope =
                probability * (dropped - (KEYS ? queries.delta[c] : queries.row_delta[r]));
            if (a.softcap > 0) slope *= attention_slope(a, score);
            scores[n][i % 4] = drops ? probability * factors[i / 4][i % 4] : probability;
            dp[n][i % 4] = slope;
        }
        tile_pairs<T>(scores[2 * k], scores[2 * k + 1], p[k]);
        tile_pairs<T>(dp[2 * k], dp[2 * k + 1], ds[k]);
    }
}

/* A warp's sums: dk and dv, or dq. */
template <int WIDTH, bool KEYS> struct backward_sums {
    float first[backward_memory<WIDTH>::SUMS / 8][4];
    float second[KEYS ? backward_memory<WIDTH>::SUMS / 8 : 1][4];
};

template <typename T, int WIDTH, bool KEYS>
DEVICE void backward_tile(const attention_arguments &a, backward_memory<WIDTH> *memory, int buffer,
                          const attention_place &at, const backward_queries &queries, int row,
                          int first, bool hides, bool drops, uint64_t key,
                          backward_sums<WIDTH, KEYS> *sums) {
    constexpr int COLUMNS = backward_memory<WIDTH>::COLUMNS, SUMS = backward_memory<WIDTH>::SUMS;
    float scores[COLUMNS / 8][4], dp[COLUMNS / 8][4];
    uint32_t p[COLUMNS / 16][4], ds[COLUMNS / 16][4];
    tile_scores<T, WIDTH, COLUMNS>(memory->own[0], row, memory->other[buffer][0], scores);
    tile_scores<T, WIDTH, COLUMNS>(memory->own[1], row, memory->other[buffer][1], dp);
    if (a.softcap > 0) attention_cap_all<COLUMNS>(a, scores);
    if (hides) attention_hide<COLUMNS, KEYS>(a, at, scores);
    backward_pairs<T, COLUMNS, KEYS>(a, at, queries, drops, key, scores, dp, p, ds);
    if constexpr (KEYS)
        tile_add<T, WIDTH, COLUMNS, SUMS>(p, memory->other[buffer][1], first, sums->second);
    tile_add<T, WIDTH, COLUMNS, SUMS>(ds, memory->other[buffer][0], first, sums->first);
}

template <int WIDTH, bool KEYS>
DEVICE backward_walk backward_begin(const attention_arguments &a, const attention_block &block,
                                    attention_part rows) {
    constexpr int COLUMNS = backward_memory<WIDTH>::COLUMNS;
    attention_part seen = KEYS ? attention_queries_of(a, rows) : attention_keys_of(a, rows);
    int32_t head = KEYS ? block.head * a.group : block.head;
    backward_walk walk = {attention_tiles_of(a, block.sequence, rows, seen, COLUMNS), 0, head,
                          head + (KEYS ? a.group : 1)};
    walk.first = walk.tiles.next;
    if (walk.tiles.next >= walk.tiles.end) walk.head = walk.heads;
    return walk;
}

template <typename T, int WIDTH, bool KEYS> DEVICE void backward(const attention_arguments &a) {
    constexpr int ROWS = backward_memory<WIDTH>::ROWS, COLUMNS = backward_memory<WIDTH>::COLUMNS;
    constexpr int PARTS = backward_memory<WIDTH>::PARTS, SUMS = backward_memory<WIDTH>::SUMS;
    static_assert(sizeof(backward_memory<WIDTH>) == ATTENTION_BACKWARD_BYTES(WIDTH), "");
    SHARED_DYNAMIC(backward_memory<WIDTH>, memory);
    attention_block block = attention_block_of(a, KEYS ? a.heads / a.group : a.heads, ROWS, !KEYS);
    attention_part rows = attention_part_at(a, block.tile * ROWS, ROWS);
    backward_walk walk = backward_begin<WIDTH, KEYS>(a, block, rows);
    int warp = (int)(threadIdx.x / 32), lane = (int)(threadIdx.x % 32), buffer = 0;
    int row = warp / PARTS * 16, first = warp % PARTS * SUMS;
    bool drops = attention_drops(a);
    uint64_t key = drops ? attention_random_key(a) : 0;
    attention_place at = {rows.first + row, 0, {0, 0}, NULL, 0, memory->random[warp]};
    backward_queries queries = {{0, 0}, {0, 0}, NULL, NULL};
    for (int r = 0; r < 2; r++) {
        int32_t mine = at.row + lane / 4 + r * 8;
        at.row_segments[r] = attention_segment(a, block.sequence, mine);
        if (KEYS || mine >= a.length) continue;
        queries.row_log_sums[r] =
            a.log_sums[backward_query(a, a.log_sum_stride, block.sequence, block.head, mine)];
        queries.row_delta[r] = a.delta[backward_query(a, a.rows, block.sequence, block.head, mine)];
    }
    backward_sums<WIDTH, KEYS> sums;
#pragma unroll
    for (int n = 0; n < SUMS / 8; n++)
        for (int i = 0; i < 4; i++) {
            sums.first[n][i] = 0.0f;
            if constexpr (KEYS) sums.second[n][i] = 0.0f;
        }
    tile_load<WIDTH, ROWS>(head_rows_of(a, KEYS ? a.k : a.q, block.sequence, block.head),
                           rows.first, memory->own[0]);
    tile_load<WIDTH, ROWS>(head_rows_of(a, KEYS ? a.v : a.dy, block.sequence, block.head),
                           rows.first, memory->own[1]);
    if (!backward_ends(walk)) backward_load<WIDTH, KEYS>(a, block, walk, memory, buffer);
    copy_commit();
    while (!backward_ends(walk)) {
        bool hides = attention_hides<KEYS>(a, walk.tiles, rows);
        at.column = walk.tiles.next * COLUMNS, at.segments = memory->segments[buffer];
        at.head = (uint32_t)(block.sequence * a.heads + walk.head);
        backward_step(a, &walk);
        if (!backward_ends(walk)) backward_load<WIDTH, KEYS>(a, block, walk, memory, buffer ^ 1);
        copy_commit();
        copy_wait<1>();
        __syncthreads();
        queries.log_sums = memory->log_sums[buffer], queries.delta = memory->delta[buffer];
        backward_tile<T, WIDTH, KEYS>(a, memory, buffer, at, queries, row, first, hides, drops, key,
                                      &sums);
        __syncthreads(); /* the next tile but one comes to this one's place */
        buffer ^= 1;
    }
    tile_write<T, WIDTH, SUMS>(sums.first, a.scale, a.scale, memory->own[0], row, first,
                               head_rows_of(a, KEYS ? a.dk : a.dq, block.sequence, block.head),
                               rows.first + row);
    if constexpr (KEYS)
        tile_write<T, WIDTH, SUMS>(sums.second, 1.0f, 1.0f, memory->own[1], row, first,
                                   head_rows_of(a, a.dv, block.sequence, block.head),
                                   rows.first + row);
}

} // namespace

#define BACKWARD(type, width)                                                                      \
    KERNEL(attention_backward_keys_##type##_##width, attention_arguments, ATTENTION_THREADS) {     \
        backward<pairs_##type, width, true>(a);                                                    \
    }                                                                                              \
    KERNEL(attention_backward_queries_##type##_##width, attention_arguments, ATTENTION_THREADS) {  \
        backward<pairs_##type, width, false>(a);                                                   \
    }
BACKWARD(bf16, 64)
BACKWARD(bf16, 128)
BACKWARD(bf16, 256)
BACKWARD(fp16, 64)
BACKWARD(fp16, 128)
BACKWARD(fp16, 256)
