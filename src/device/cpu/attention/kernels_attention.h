/* Attention of one kv head of a sequence with the query heads of its group, on one thread; compiled
 * for each instruction set. It works on blocks of queries times blocks of keys, never on a whole
 * matrix of scores: FlashAttention-2 (Dao 2023), with queries along the vector's lanes. */
#ifndef CPU_KERNELS_ATTENTION_H
#define CPU_KERNELS_ATTENTION_H

#include "device/call.h"

/* A block of queries has at most so many. */
enum { CPU_QUERIES_BEHIND = 64 };

typedef struct cpu_attention {
    base_dtype dtype;
    int64_t queries, keys;
    /* Query i stands at position `first` + i, and from query `run` on `apart` further. Blocks of
     * queries begin at `origin` and at multiples of their length from there, whichever queries
     * there are, so these change no bit of a query. */
    int64_t first, run, apart, origin;
    int64_t head_dim, group; /* query heads, adjacent in q, y, dy and dq */
    int64_t window, ahead;   /* query i sees key j if i - j < window and j - i < ahead */
    const int32_t *segments; /* of keys: a query sees keys of its own segment; NULL: one segment */
    int64_t segment_stride;
    float scale, softcap; /* softcap c: scores s become c tanh(s / c); 0: none */
    /* A bias by distance, in scores before their scale: times the slope of head first_slope + h of
     * the group, of `slopes` heads; 0: none. Not with a soft cap. */
    float alibi;
    int64_t slopes, first_slope;
    float dropout;
    uint64_t random_key;
    uint32_t random_head; /* of the group's first head, among those of all sequences */
    const void *q, *k, *v, *dy;
    void *y, *dq, *dk, *dv;
    base_dtype dk_dtype, dv_dtype;
    int64_t q_stride, k_stride, v_stride, y_stride, dy_stride;
    int64_t dq_stride, dk_stride, dv_stride;
    /* Scores by relative position: tables of `places` rows x head_dim for queries and for keys to
     * be multiplied with, each NULL where there is none, and their gradients, which are added to:
     * fp32, NULL where unwanted. rows_of[d + keys - 1] is the row for query minus key = d; it has
     * CPU_QUERIES_BEHIND distances behind the largest one. */
    int64_t places; /* 0: no such scores */
    const void *position_keys, *position_queries;
    int64_t position_key_stride, position_query_stride, dposition_stride;
    float *dposition_keys, *dposition_queries;
    const int32_t *rows_of;
    float *log_sums; /* one a query, heads log_sum_stride apart; forward: may be NULL */
    int64_t log_sum_stride;
    float *scratch;
} cpu_attention;

/* One query against keys [0, keys) of a cache: out[2 + head_dim] gets the largest score, the sum of
 * exponentials relative to it, and the sum of values weighted by them. */
typedef struct cpu_attention_range {
    base_dtype dtype;
    int64_t keys, head_dim, k_stride, v_stride;
    float scale, softcap;
    float slope;  /* of a bias by distance, behind the scale */
    int64_t from; /* the first key's position, less the query's */
    const void *q, *k, *v;
    float *out;
    float *scores; /* scratch for `keys` scores */
} cpu_attention_range;

typedef struct cpu_attention_kernels {
    void (*forward)(const cpu_attention *a);
    void (*backward)(const cpu_attention *a);
    void (*range)(const cpu_attention_range *range);
    /* number of floats in scratch */
    int64_t (*forward_floats)(base_dtype dtype, int64_t keys, int64_t head_dim, int64_t places);
    int64_t (*backward_floats)(base_dtype dtype, int64_t keys, int64_t head_dim, int64_t places);
} cpu_attention_kernels;

extern const cpu_attention_kernels cpu_attention_kernels_plain, cpu_attention_kernels_avx2,
    cpu_attention_kernels_avx512, cpu_attention_kernels_avx512_bf16;

#endif
