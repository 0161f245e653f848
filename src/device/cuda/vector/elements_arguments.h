/* Arguments of the kernels that compute element by element: elements.cu, dropout.cu. */
#ifndef CUDA_ELEMENTS_ARGUMENTS_H
#define CUDA_ELEMENTS_ARGUMENTS_H

#include <stdint.h>

#include "device/call.h"

/* A matrix of the call's shape and type; NULL where the call has none. */
typedef struct elements_operand {
    void *data;
    int64_t stride; /* elements */
} elements_operand;

/* Results are added to with `add`. A backward kernel's are the gradients of x[0] and x[1]. */
typedef struct elements_arguments {
    elements_operand x[2], dy, result[2];
    const void *factor; /* of scale_by: one element; else NULL */
    int64_t rows, columns;
    float number; /* the factor of scale, the slope of swish, the limit of clip */
    bool add[2];
    uint8_t reserved[2];
} elements_arguments;

/* Packs of a thread of dropout. */
enum { DROPOUT_PACKS = 4 };

typedef struct dropout_arguments {
    elements_operand x, result;
    int64_t rows, columns;
    const device_step *step;
    uint64_t element; /* of the first one: a coordinate of its number */
    int64_t whole;    /* elements from a row to the next one, of the whole value */
    uint64_t place;   /* micro batch and op: others */
    float probability, keep;
    bool add;
    uint8_t reserved[7];
} dropout_arguments;

#endif
