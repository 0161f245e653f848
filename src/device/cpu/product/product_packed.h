/* c (+)= a b, + bias, where a has many rows: b is packed once a call, then tiles of rows of a run
 * against it. Operands of 16 bits that products do not take are widened on the way, a piece of b
 * and a tile of a at a time, into scratch that stays in a thread's cache, and c is rounded from
 * there: no copy of a whole operand in fp32. Where a has so few rows that packing would take longer
 * than the product, a widened piece of b is used as it is. */
#ifndef CPU_PRODUCT_PACKED_H
#define CPU_PRODUCT_PACKED_H

#include "device/cpu/product/product_pieces.h"

typedef struct cpu_packed {
    cpu_pieces pieces; /* pieces.count == 0: too few rows, or the library packs no such b */
    int64_t inner, groups;
    bool widen, b_transposed;
    bool plain;           /* few rows: pieces of b are used as they are widened, packed nowhere */
    int64_t thread_bytes; /* of scratch, each thread's own */
} cpu_packed;

typedef struct cpu_packed_operands {
    device_matrix a, b, bias, c; /* as they are stored; bias may be NONE */
    bool add;
    char *packed;  /* cpu_packed_bytes */
    char *threads; /* the device's threads x thread_bytes */
} cpu_packed_operands;

/* `shape` as of the product of fp32 operands; with `widen` its strides are not looked at. Its rows
 * may be a part of `whole` rows, and are cut as those are. */
sifr_status cpu_packed_find(device *dev, cpu_product_shape shape, int64_t whole, bool widen,
                            cpu_packed *out, sifr_error *error) SIFR_MUST_CHECK;

static inline int64_t cpu_packed_bytes(const cpu_packed *packed) {
    return cpu_pieces_bytes(&packed->pieces);
}

/* On all threads of the device; false if the library reports a fault. */
bool cpu_packed_run(device *dev, const cpu_packed *packed, const cpu_packed_operands *operands);

#endif
