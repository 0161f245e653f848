/* c (+)= a b, + bias, for an a with many rows: b is packed once a call, then tiles of rows run
 * against it. 16-bit operands that products do not accept are widened on the way, a piece of b and
 * a tile of a at a time, into scratch that stays in a thread's cache, and c is rounded from there:
 * no operand is copied to fp32 as a whole. If a has so few rows that packing takes longer than the
 * product, a widened piece of b is used directly. */
#ifndef CPU_PRODUCT_PACKED_H
#define CPU_PRODUCT_PACKED_H

#include "device/cpu/product/product_pieces.h"

typedef struct cpu_packed {
    cpu_pieces pieces; /* pieces.count == 0: too few rows, or the library cannot pack b */
    int64_t inner, groups;
    bool widen, b_transposed;
    bool plain;           /* few rows: widened pieces of b are used without packing */
    int64_t thread_bytes; /* of scratch, per thread */
} cpu_packed;

typedef struct cpu_packed_operands {
    device_matrix a, b, bias, c; /* as stored; bias may be NONE */
    bool add;
    char *packed;  /* cpu_packed_bytes */
    char *threads; /* the device's threads x thread_bytes */
} cpu_packed_operands;

/* `shape` is that of the product in fp32; with `widen` its strides are ignored. Its rows may be
 * part of `whole` rows, and then have the same tiles. */
sifr_status cpu_packed_find(device *dev, cpu_product_shape shape, int64_t whole, bool widen,
                            cpu_packed *out, sifr_error *error) SIFR_MUST_CHECK;

static inline int64_t cpu_packed_bytes(const cpu_packed *packed) {
    return cpu_pieces_bytes(&packed->pieces);
}

/* Runs on all threads of the device; false if the library reports a fault. */
bool cpu_packed_run(device *dev, const cpu_packed *packed, const cpu_packed_operands *operands);

#endif
