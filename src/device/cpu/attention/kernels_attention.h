/* Attention of one kv head of a sequence with the query heads of its group, on one thread; compiled
 * for each instruction set. It works on blocks of queries times blocks of keys, never on a whole
 * matrix of scores: FlashAttention-2 (Dao 2023), with queries along the vector's lanes. */
#ifndef CPU_KERNELS_ATTENTION_H
#define CPU_KERNELS_ATTENTION_H

#include "device/device.h"

typedef struct cpu_attention {
    base_dtype dtype;
    int64_t queries, keys;   /* query i stands at position keys - queries + i */
    int64_t head_dim, group; /* query heads, adjacent in q, y, dy and dq */
    int64_t window, ahead;   /* query i sees key j if i - j < window and j - i < ahead */
    const int32_t *segments; /* of keys: a query sees keys of its own segment; NULL: one segment */
    int64_t segment_stride;
    float scale, softcap; /* softcap c: scores s become c tanh(s / c); 0: none */
    float dropout;
    uint64_t random_key;
    uint32_t random_head; /* sequence * heads + the group's first head */
    const void *q, *k, *v, *dy;
    void *y, *dq, *dk, *dv;
    int64_t q_stride, k_stride, v_stride, y_stride, dy_stride;
    int64_t dq_stride, dk_stride, dv_stride;
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
    const void *q, *k, *v;
    float *out;
    float *scores; /* scratch for `keys` scores */
} cpu_attention_range;

typedef struct cpu_attention_kernels {
    void (*forward)(const cpu_attention *a);
    void (*backward)(const cpu_attention *a);
    void (*range)(const cpu_attention_range *range);
    /* number of floats in scratch */
    int64_t (*forward_floats)(base_dtype dtype, int64_t keys, int64_t head_dim);
    int64_t (*backward_floats)(base_dtype dtype, int64_t keys, int64_t head_dim);
} cpu_attention_kernels;

extern const cpu_attention_kernels cpu_attention_kernels_plain, cpu_attention_kernels_avx2,
    cpu_attention_kernels_avx512, cpu_attention_kernels_avx512_bf16;

#endif
