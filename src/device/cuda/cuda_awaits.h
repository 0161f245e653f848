/* Words of host memory that DEVICE_COMPUTE of a GPU waits for (device/await.h). Calls need the
 * context, and come from the thread that gives that queue its work.
 *
 * A stream takes some 1,024 pieces of work; then a launch waits for room. Meanwhile it may hold a
 * lock of the driver that the writer of the word needs. So the host stays far below that: a library
 * may make more than one piece of a call. */
#ifndef CUDA_AWAITS_H
#define CUDA_AWAITS_H

#include "device/await.h"
#include "device/cuda/cuda_driver.h"

enum {
    CUDA_AWAITS = 64, /* words that are not written yet, at most */
    CUDA_AHEAD = 256  /* pieces of work from the wait for the first of them on, likewise */
};

typedef struct cuda_awaits {
    struct cuda_awaited {
        const device_word *word;
        uint32_t value;
        int64_t given; /* before it */
    } line[CUDA_AWAITS];
    uint32_t first, next; /* from 0 */
    int64_t given;        /* to the queue: launches, products, copies, marks and waits */
} cuda_awaits;

sifr_status cuda_awaits_add(cuda_awaits *awaits, const cuda_driver *driver, cuda_stream stream,
                            const device_word *word, uint32_t value,
                            sifr_error *error) SIFR_MUST_CHECK;

/* Before so many launches, calls of a library, copies, marks, or waits for other queues: waits
 * while they would take the host too far ahead. */
void cuda_awaits_give(cuda_awaits *awaits, int64_t count);

/* Before a block is given back: its words are not looked at any more. */
void cuda_awaits_forget(cuda_awaits *awaits, const void *block, int64_t bytes);

#endif
