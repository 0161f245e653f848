/* Arguments of dequantise.cu. */
#ifndef CUDA_DEQUANTISE_ARGUMENTS_H
#define CUDA_DEQUANTISE_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/nf4.h"

/* A block opens a record: a thread a scale, and PACK values at a time. */
enum { DEQUANTISE_THREADS = BASE_NF4_SCALES };

typedef struct dequantise_arguments {
    const uint8_t *records;
    void *to;
    int64_t stride; /* bytes from a record to the next one */
    bool doubled;
    bool wide; /* records are aligned to four bytes */
    uint8_t reserved[6];
} dequantise_arguments;

#endif
