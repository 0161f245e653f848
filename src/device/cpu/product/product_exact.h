/* Products whose bits do not depend on how tensor ranks divide them: c (+)= a b + bias, in pieces
 * that are the same one-thread products however many of them are here
 * (docs/tensor.md, "The same bits at every size").
 *
 * Each dimension is in parts. Those of rows and of columns are computed by themselves. Those of the
 * inner dimension are added in fp32 in tree order, and tensor ranks go on to add theirs up the same
 * tree (device/tree_sum.h); the sum is rounded once, with the bias. */
#ifndef CPU_PRODUCT_EXACT_H
#define CPU_PRODUCT_EXACT_H

#include "device/cpu/product/product_rows.h"

/* A dimension: `pieces` parts, a power of two up to DEVICE_LINEAR_PIECES. Part p has the elements
 * first[r] + p width[r] … of each run r; runs of the inner dimension are added from the first on.
 */
typedef struct cpu_parts {
    int32_t pieces, runs;
    int64_t first[DEVICE_LINEAR_RUNS], width[DEVICE_LINEAR_RUNS];
    int64_t size;
} cpu_parts;

static inline cpu_parts cpu_one_part(int64_t size) {
    return (cpu_parts){.pieces = 1, .runs = 1, .width = {size}, .size = size};
}

typedef struct cpu_exact_shape {
    cpu_parts rows, columns, inner; /* at most one of them has several runs */
    int64_t whole; /* if there is one part of rows, and they are some of so many; else 0 */
    int64_t tile;  /* height of tiles; the same whatever the number of ranks */
    bool divided;  /* ranks divide the inner dimension, and so a's stride depends on them */
    int64_t a_stride, b_stride; /* of a in the products' type; of b as stored */
    base_dtype type;            /* of the products: FP32; or BF16 where they take it */
    bool widen_a, widen_b;      /* have 16 bits, and products are in fp32 */
    bool b_transposed;
} cpu_exact_shape;

/* The products of a run. */
typedef struct cpu_exact_products {
    cpu_row_tiles tiles;
    int64_t inner, columns; /* of a piece of b */
    int64_t count;          /* such pieces in a part of the columns */
    int64_t bytes, at;      /* of a piece, as products read it; where the first one begins */
    bool packed;
} cpu_exact_products;

typedef struct cpu_exact {
    cpu_exact_shape shape;
    cpu_exact_products run[DEVICE_LINEAR_RUNS];
    int64_t pieces, groups; /* of b: all, and those of a tile of rows in groups for the threads */
    int levels;             /* sums of a tile at a time, of the tree over parts */
    bool dense;             /* a is copied, since its stride depends on the ranks */
    int64_t b_bytes, thread_bytes, made_bytes, wide_bytes;
} cpu_exact;

typedef struct cpu_exact_operands {
    device_matrix a, b, bias, c; /* bias may be NONE; c: any float type */
    bool add;
    char *pieces;  /* b_bytes */
    char *threads; /* the device's threads x thread_bytes */
} cpu_exact_operands;

sifr_status cpu_exact_find(device *dev, const cpu_exact_shape *shape, cpu_exact *out,
                           sifr_error *error) SIFR_MUST_CHECK;

/* Runs on all threads of the device; false if the library reports a fault. */
bool cpu_exact_run(device *dev, const cpu_exact *exact, const cpu_exact_operands *operands);

/* c, rows x columns, (+)= made + bias, rounded once; bias: of any float type, 1 x columns, or NONE.
 * `made` may be c. */
void cpu_exact_finish(const cpu_matrix_kernels *kernels, const float *made, int64_t made_stride,
                      const device_matrix *bias, const device_matrix *c, bool add);

#endif
