/* Attributes of attention. */
#ifndef DEVICE_ATTENTION_ATTRIBUTES_H
#define DEVICE_ATTENTION_ATTRIBUTES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct device_attention_attributes {
    int32_t heads, kv_heads, head_dim;
    int64_t sequences, length; /* rows = sequences x length; cached: the capacity of one sequence */
    float scale, softcap, dropout;
    int64_t window;
    int32_t buckets, most_distance;  /* of relative positions */
    bool bidirectional;              /* not cached */
    int32_t whole_heads, first_head; /* dropout draws by heads of the whole value, of which the call
                                        may have some from first_head on; 0: it has all */
    /* A bias by distance: the score of query i and key j gets alibi x slope x (j - i), with the
     * slope of head alibi_first + h of alibi_heads (device/alibi.h); 0: none. */
    float alibi;
    int32_t alibi_heads, alibi_first;
    int32_t all_kv_heads; /* of a tensor rank's part of them: those of all ranks, which decide the
                             tiles, and so the bits; 0: as many as kv_heads */
    int32_t contexts, context; /* of queries this one of so many context ranks has two runs of each
                                  sequence (device_attention_run); 0: it has all */
} device_attention_attributes;

/* A context rank has two runs of length / (2 contexts) tokens of each sequence, one behind the
 * other: run `context` from the start of the sequence and run `context` from its end. So with a
 * causal mask each rank has as many pairs of a query and a key. The first token of run 0 or 1. */
static inline int64_t device_attention_run(const device_attention_attributes *a, int run) {
    int64_t half = a->length / (2 * a->contexts);
    return half * (run ? 2 * a->contexts - 1 - a->context : a->context);
}

/* Blocks of queries begin at multiples of at most so many tokens. */
#define DEVICE_ATTENTION_BLOCK 64

/* Of each sequence, the keys from *from on and before *to that queries [first, first + count) may
 * read; keys that they do not see may be among them. Other keys may hold anything. */
static inline void device_attention_reach(const device_attention_attributes *a, int64_t first,
                                          int64_t count, int64_t *from, int64_t *to) {
    int64_t begins = first - first % DEVICE_ATTENTION_BLOCK - a->window + 1;
    bool ahead = a->bidirectional, far = a->window == 0;
    int64_t end = first + count + (ahead && !far ? a->window - 1 : 0);
    *from = far || begins < 0 ? 0 : begins - begins % 8;
    *to = (ahead && far) || end > a->length ? a->length : end;
}

#endif
