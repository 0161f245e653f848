/* Arguments of the kernel that adds up parts of weight gradients, for both sides. */
#ifndef CUDA_PARTS_ARGUMENTS_H
#define CUDA_PARTS_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

/* A block adds PARTS_COLUMNS elements; PARTS_SLICES threads have one, each a run of the parts. */
enum { PARTS_COLUMNS = 32, PARTS_SLICES = 8, PARTS_THREADS = PARTS_COLUMNS * PARTS_SLICES };

/* Element e of the result is the sum of parts[p * length + e] over p < count. It lies in row e /
 * columns. */
typedef struct parts_arguments {
    const float *parts;
    float *to;
    int64_t count, length, elements, columns, to_stride;
    bool add;
    uint8_t reserved[7];
} parts_arguments;

#endif
