#include "device/cuda/kernel.h"
#include "device/cuda/vector/clear_arguments.h"

/* A block clears part of one row: 16 bytes a thread where they are aligned. */
KERNEL(clear, clear_arguments, 256) {
    unsigned char *row = a.y + (int64_t)blockIdx.y * a.stride;
    int64_t at = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * 16;
    if (at + 16 <= a.bytes && (uintptr_t)(row + at) % 16 == 0) {
        uint4 zero = {0, 0, 0, 0};
        *(uint4 *)(row + at) = zero;
        return;
    }
    for (int64_t i = at; i < at + 16 && i < a.bytes; i++) row[i] = 0;
}
