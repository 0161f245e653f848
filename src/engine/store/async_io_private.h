/* Shared by async_io.c, io_queue.c, plain_io.c and ring_io.c; nobody else includes it. */
#ifndef ENGINE_ASYNC_IO_PRIVATE_H
#define ENGINE_ASYNC_IO_PRIVATE_H

#include <liburing.h>
#include <pthread.h>

#include "engine/store/async_io.h"

typedef struct io_transfer {
    const engine_io_file *file;
    char *memory;
    int64_t offset, bytes;
    int64_t cut;  /* bytes handed out as blocks */
    int64_t left; /* of `bytes`, not moved yet */
    bool write, taken;
    bool failed;
    int number;    /* errno; 0: the file ended */
    int64_t where; /* position in the file of the first failure */
    engine_io_times times;
} io_transfer;

/* A part of a transfer that is moved as one request. */
typedef struct io_block {
    io_transfer *transfer;
    int64_t at, bytes; /* in the transfer */
} io_block;

typedef struct io_thread {
    engine_io *io;
    pthread_t thread;
    bool running, has_ring;
    struct io_uring ring;
    io_block *blocks; /* in progress in the ring, by user data */
    int32_t *idle;    /* free entries of `blocks` */
    int32_t idle_count;
} io_thread;

/* Transfers of one direction with blocks left to hand out, oldest first. */
typedef struct io_line {
    int32_t *transfers;
    int32_t first, waiting;
} io_line;

struct engine_io {
    engine_io_settings settings;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stop, rings;
    io_transfer *transfers;
    int32_t capacity;
    io_line lines[2];      /* reads, writes: they take turns */
    int32_t turn;          /* queue that hands out the next block, if it has one */
    int64_t read, written; /* bytes of what was started */
    io_thread *threads;
    int32_t thread_count;
    struct iovec *pinned; /* registered with the rings, by index */
    unsigned pinned_count;
};

/* io_queue.c: puts the transfer at this index behind the others of its direction, with the lock
 * held. */
void io_join_line(engine_io *io, int32_t line, int32_t transfer);

/* Takes up to `most` blocks of the oldest transfers, alternating reads and writes. With `sleep`,
 * waits for at least one; none once the queues are closed. */
int32_t io_take_blocks(engine_io *io, io_block *out, int32_t most, bool sleep);

/* Reports a moved block, or with `failed` a block that was not moved because of errno `number` (0:
 * the file ended). */
void io_finish_block(engine_io *io, const io_block *block, bool failed, int number);

/* Sets up a thread's ring; false if the kernel refuses. */
bool io_ring_open(io_thread *thread);
void io_ring_close(io_thread *thread);

/* The threads' functions; the first falls back to the second. */
void *io_ring_run(void *thread);
void *io_plain_run(void *thread);

#endif
