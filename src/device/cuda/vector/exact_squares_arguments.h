/* Arguments of exact_squares.cu. */
#ifndef CUDA_EXACT_SQUARES_ARGUMENTS_H
#define CUDA_EXACT_SQUARES_ARGUMENTS_H

#include <stdint.h>

#include "base/exact_sum.h"

/* A thread adds ROUNDS x AHEAD numbers, and loads AHEAD of them before it adds them; EACH: numbers
 * of a block. */
enum {
    EXACT_THREADS = 256,
    EXACT_AHEAD = 8,
    EXACT_ROUNDS = 8,
    EXACT_EACH = EXACT_THREADS * EXACT_AHEAD * EXACT_ROUNDS
};

typedef struct exact_squares_arguments {
    const void *data;
    int64_t count;
    base_exact_sum *sum; /* added to, without settling it */
} exact_squares_arguments;

#endif
