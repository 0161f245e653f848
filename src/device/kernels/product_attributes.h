/* Attributes of the kernels of products.def; DEVICE_ORTHOGONALISE has those of updates. */
#ifndef DEVICE_PRODUCT_ATTRIBUTES_H
#define DEVICE_PRODUCT_ATTRIBUTES_H

#include <stdbool.h>
#include <stdint.h>

enum { DEVICE_LINEAR_RUNS = 3, DEVICE_LINEAR_PIECES = 8 };

typedef struct device_linear_attributes {
    bool transposed;
    /* With pieces > 0, 1, 2, 4 or 8, the inputs or else the outputs that are here are made of so
     * many pieces, whatever number of tensor ranks has how many of them. Bits follow from the
     * pieces: each is a product by itself; sums over pieces are in fp32, in tree order, and rounded
     * once. Piece p has part p of each run; run_end: where runs end, from the first on. */
    bool cut_inputs;
    int32_t pieces, runs;
    int64_t run_end[DEVICE_LINEAR_RUNS];
    int64_t whole; /* rows of the whole matrix if the operands are part of it, from a
                      multiple of device_token_chunk on: results equal those of the whole;
                      0: the operands are the whole */
} device_linear_attributes;

typedef struct device_magnitude_attributes {
    bool transposed;
    int32_t columns; /* out */
    float scale;
} device_magnitude_attributes;

enum { DEVICE_MOST_POWER_RANK = 64 };
typedef struct device_power_attributes {
    int64_t first;  /* build: of the elements of the whole matrix */
    uint64_t seed;  /* base: of random numbers, ... */
    int32_t weight; /* ... another coordinate of them */
    int32_t ranks;  /* keep: that take part */
    float epsilon;
    bool draws, fresh;
} device_power_attributes;

#endif
