/* Arguments of the kernels of column_sums.cu. */
#ifndef CUDA_COLUMN_SUMS_ARGUMENTS_H
#define CUDA_COLUMN_SUMS_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

enum { COLUMN_SUMS_ROWS = 128, COLUMN_SUMS_THREADS = 128 };

/* Block (x, y): a part of 128 rows, 128 columns. */
typedef struct column_sums_arguments {
    const void *from;
    float *parts; /* ceil(rows / 128) x columns */
    int64_t rows, columns, stride;
} column_sums_arguments;

/* to += or = the sums of the parts, in order: those of a chunk first, then the chunks. */
typedef struct column_totals_arguments {
    const float *parts;
    float *to;
    /* Device memory: rows that are there, of which the parts begin with row `first`; NULL: all. */
    const int32_t *count;
    int64_t first;
    int64_t parts_count, columns, chunk; /* chunk: parts in it */
    bool accumulate;
    uint8_t reserved[7];
} column_totals_arguments;

#endif
