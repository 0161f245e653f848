/* Attributes of the kernels of products.def; DEVICE_ORTHOGONALISE has those of updates. */
#ifndef DEVICE_PRODUCT_ATTRIBUTES_H
#define DEVICE_PRODUCT_ATTRIBUTES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct device_linear_attributes {
    bool transposed;
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
