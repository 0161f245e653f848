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
    int32_t all_kv_heads; /* of a tensor rank's part of them: those of all ranks, which decide the
                             tiles, and so the bits; 0: as many as kv_heads */
} device_attention_attributes;

#endif
