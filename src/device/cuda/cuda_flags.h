/* Words of host memory that DEVICE_COMPUTE of a GPU waits for (device/flag.h). Calls need the
 * context, and come from the thread that gives that queue its work.
 *
 * A stream takes some 1,024 pieces of work; then a launch waits for room. Meanwhile it may hold a
 * lock of the driver that the writer of the flag needs. So the host stays far below that: a library
 * may make more than one piece of a call. */
#ifndef CUDA_FLAGS_H
#define CUDA_FLAGS_H

#include "device/cuda/cuda_driver.h"
#include "device/flag.h"

enum {
    CUDA_FLAGS = 64, /* flags that are not written yet, at most */
    CUDA_AHEAD = 256 /* pieces of work from the wait for the first of them on, likewise */
};

typedef struct cuda_flags {
    struct cuda_flag_wait {
        const device_flag *flag;
        uint32_t value;
        int64_t given; /* before it */
    } line[CUDA_FLAGS];
    uint32_t first, next; /* from 0 */
    int64_t given;        /* to the queue: launches, products, copies, marks and waits */
} cuda_flags;

sifr_status cuda_flags_add(cuda_flags *flags, const cuda_driver *driver, cuda_stream stream,
                           const device_flag *flag, uint32_t value,
                           sifr_error *error) SIFR_MUST_CHECK;

/* Before so many launches, calls of a library, copies, marks, or waits for other queues: waits
 * while they would take the host too far ahead. */
void cuda_flags_give(cuda_flags *flags, int64_t count);

/* Before a block is given back: its flags are not looked at any more. */
void cuda_flags_forget(cuda_flags *flags, const void *block, int64_t bytes);

#endif
