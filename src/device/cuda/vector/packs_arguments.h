/* Threads of kernels that go through vectors and matrices element by element. */
#ifndef CUDA_PACKS_ARGUMENTS_H
#define CUDA_PACKS_ARGUMENTS_H

#include <stdint.h>

/* Elements that a thread takes at a time, and threads of a block. */
enum { PACK = 8, PACK_THREADS = 256 };

#endif
