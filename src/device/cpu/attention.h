/* Causal attention in blocks (FlashAttention-2, Dao 2023): a tile holds scores of BLOCK keys and
 * BLOCK queries at a time. Queries lie in vector lanes and keys in rows, so maxima and sums over
 * keys need no work across lanes. Arithmetic is in fp32 for every storage type. */
#ifndef CPU_ATTENTION_H
#define CPU_ATTENTION_H

#include "device/device.h"

enum { ATTENTION_BLOCK = 64 };

/* Work of one thread, and what of it belongs to it alone. */
typedef struct attention_tile {
    const device_call *call;
    int64_t sequence;
    int64_t head;   /* query head; backward: kv head */
    int64_t block;  /* forward: of queries */
    float *scratch; /* as many floats as attention_floats says */
} attention_tile;

/* Floats of scratch a thread needs, for forward and backward calls of this shape. */
int64_t attention_floats(const device_call *call);

typedef struct attention_kernels {
    void (*forward)(const attention_tile *tile);
    void (*backward)(const attention_tile *tile);
    void (*cached)(const attention_tile *tile); /* head: query head; all new rows */
} attention_kernels;

extern const attention_kernels attention_kernels_plain, attention_kernels_avx2,
    attention_kernels_avx512;

#endif
