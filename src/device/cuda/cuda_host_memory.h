/* Host memory for copies to a GPU and from it: pinned, so that copies need no staging, or ordinary
 * memory where the system pins no more. The driver copies that through a buffer of its own: correct
 * as well, but slower, and a copy may end only when the call that starts it returns. */
#ifndef CUDA_HOST_MEMORY_H
#define CUDA_HOST_MEMORY_H

#include <pthread.h>

#include "device/cuda/cuda_driver.h"

typedef struct cuda_host_memory {
    pthread_mutex_t lock;
    struct cuda_plain_block {
        void *at;
        int64_t bytes;
    } * plain; /* those that are not pinned */
    size_t count, capacity;
    int64_t plain_bytes, most_plain;
} cuda_host_memory;

void cuda_host_memory_open(cuda_host_memory *memory); /* a zeroed one */
void cuda_host_memory_close(cuda_host_memory *memory);

/* A context must be current. Blocks are zeroed and touched; they belong to the caller until they
 * are given back. */
sifr_status cuda_host_memory_take(cuda_host_memory *memory, const cuda_driver *driver,
                                  int64_t bytes, void **out, sifr_error *error) SIFR_MUST_CHECK;
void cuda_host_memory_give(cuda_host_memory *memory, const cuda_driver *driver, void *block);

int64_t cuda_host_memory_plain(cuda_host_memory *memory);      /* bytes taken that are not pinned */
int64_t cuda_host_memory_most_plain(cuda_host_memory *memory); /* the most of them at a time */

#endif
