/* What the kernel that clears takes. */
#ifndef CUDA_CLEAR_ARGUMENTS_H
#define CUDA_CLEAR_ARGUMENTS_H

#include <stdint.h>

typedef struct clear_arguments {
    unsigned char *y;
    int64_t rows, bytes, stride; /* bytes of a row, and between the starts of two */
} clear_arguments;

#endif
