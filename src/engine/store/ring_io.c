/* A thread that moves blocks through a ring of its own (io_uring). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/heap.h"
#include "engine/store/async_io_private.h"

bool io_ring_open(io_thread *thread) {
    unsigned depth = (unsigned)thread->io->settings.queue_depth;
    thread->has_ring = io_uring_queue_init(depth, &thread->ring, 0) == 0;
    for (unsigned i = 0; i < depth; i++) thread->idle[i] = (int32_t)i;
    thread->idle_count = (int32_t)depth;
    return thread->has_ring;
}

void io_ring_close(io_thread *thread) {
    if (thread->has_ring) io_uring_queue_exit(&thread->ring);
    thread->has_ring = false;
    free(thread->blocks);
    free(thread->idle);
    thread->blocks = NULL;
    thread->idle = NULL;
}

/* The pinned range that contains the whole block; -1: none. */
static int pinned_index(const engine_io *io, const char *memory, int64_t bytes) {
    for (unsigned i = 0; i < io->pinned_count; i++) {
        const char *start = io->pinned[i].iov_base;
        if (memory >= start && memory + bytes <= start + io->pinned[i].iov_len) return (int)i;
    }
    return -1;
}

static void prepare(io_thread *thread, int32_t place) {
    base_assert(place >= 0 && place < thread->io->settings.queue_depth);
    const io_block *block = &thread->blocks[place];
    const io_transfer *t = block->transfer;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&thread->ring); /* as many as blocks */
    base_assert(sqe);
    char *memory = t->memory + block->at;
    uint64_t offset = (uint64_t)(t->offset + block->at);
    unsigned bytes = (unsigned)block->bytes;
    int file = t->file->descriptor, pinned = pinned_index(thread->io, memory, block->bytes);
    if (pinned >= 0 && t->write)
        io_uring_prep_write_fixed(sqe, file, memory, bytes, offset, pinned);
    else if (pinned >= 0)
        io_uring_prep_read_fixed(sqe, file, memory, bytes, offset, pinned);
    else if (t->write)
        io_uring_prep_write(sqe, file, memory, bytes, offset);
    else
        io_uring_prep_read(sqe, file, memory, bytes, offset);
    io_uring_sqe_set_data64(sqe, (uint64_t)place);
}

/* Submits the prepared requests and waits until `wait_for` are done. Returns 0, or the errno that
 * broke the ring. If the kernel is out of resources or was interrupted, requests stay prepared in
 * the ring and are submitted at the next call. */
static int submit(io_thread *thread, unsigned wait_for) {
    int result = io_uring_submit_and_wait(&thread->ring, wait_for);
    bool later = result == -EINTR || result == -EAGAIN || result == -EBUSY;
    return result < 0 && !later ? -result : 0;
}

/* Sleeps while there is nothing to do; if all entries are idle afterwards, the queues are closed.
 */
static int fill(io_thread *thread) {
    const engine_io_settings *s = &thread->io->settings;
    bool busy = thread->idle_count < s->queue_depth;
    int broken = 0;
    if (busy && !s->overlap_events) return 0;
    while (thread->idle_count > 0 && !broken) {
        int32_t place = thread->idle[thread->idle_count - 1];
        bool sleep = thread->idle_count == s->queue_depth;
        if (io_take_blocks(thread->io, &thread->blocks[place], 1, sleep) == 0) break;
        thread->idle_count--;
        prepare(thread, place);
        if (s->single_submit) broken = submit(thread, 0);
    }
    return broken;
}

/* Handles a block that the kernel has finished: done, or submitted again for the missing bytes. */
static void complete(io_thread *thread, int32_t place, int result) {
    io_block *block = &thread->blocks[place];
    bool again = result == -EINTR || result == -EAGAIN;
    if (result > 0 && result < block->bytes) {
        io_block moved = {block->transfer, block->at, result};
        block->at += result;
        block->bytes -= result;
        io_finish_block(thread->io, &moved, false, 0);
        again = true;
    }
    if (again) {
        prepare(thread, place);
        return;
    }
    bool failed = result <= 0;
    int number = result < 0 ? -result : block->transfer->write ? ENOSPC : 0;
    io_finish_block(thread->io, block, failed, failed ? number : 0);
    base_assert(thread->idle_count < thread->io->settings.queue_depth);
    thread->idle[thread->idle_count++] = place;
}

static int drain(io_thread *thread) {
    struct io_uring_cqe *cqe;
    int broken = submit(thread, 1);
    while (!broken && io_uring_peek_cqe(&thread->ring, &cqe) == 0) {
        int32_t place = (int32_t)io_uring_cqe_get_data64(cqe);
        base_assert(place >= 0 && place < thread->io->settings.queue_depth);
        int moved = cqe->res;
        io_uring_cqe_seen(&thread->ring, cqe);
        complete(thread, place, moved);
    }
    return broken;
}

/* The ring is broken: blocks in progress fail, and later blocks are moved without it. */
static void abandon(io_thread *thread, int number) {
    int32_t depth = thread->io->settings.queue_depth;
    io_uring_queue_exit(&thread->ring);
    thread->has_ring = false;
    for (int32_t place = 0; place < depth; place++) {
        bool idle = false;
        for (int32_t i = 0; i < thread->idle_count; i++) idle |= thread->idle[i] == place;
        if (!idle) io_finish_block(thread->io, &thread->blocks[place], true, number);
    }
}

void *io_ring_run(void *argument) {
    io_thread *thread = argument;
    for (;;) {
        int broken = fill(thread);
        if (!broken && thread->idle_count == thread->io->settings.queue_depth) return NULL;
        if (!broken) broken = drain(thread);
        if (!broken) continue;
        abandon(thread, broken);
        return io_plain_run(thread);
    }
}

bool engine_io_is_pinned(const engine_io *io, const void *memory, int64_t bytes) {
    return pinned_index(io, memory, bytes) >= 0;
}

bool engine_io_pin(engine_io *io, const struct iovec *memory, unsigned count, int *number) {
    int32_t done = 0;
    int result = 0;
    *number = 0;
    if (!io->rings || io->pinned || count == 0) return false;
    *number = ENOMEM;
    if (base_alloc(count, sizeof *io->pinned, &io->pinned, NULL) != SIFR_OK) return false;
    memcpy(io->pinned, memory, count * sizeof *memory);
    while (done < io->thread_count && result == 0) {
        result = io_uring_register_buffers(&io->threads[done].ring, memory, count);
        done += result == 0;
    }
    *number = -result;
    if (result == 0) {
        pthread_mutex_lock(&io->lock); /* threads read it only after they have held the lock */
        io->pinned_count = count;
        pthread_mutex_unlock(&io->lock);
        return true;
    }
    while (done-- > 0) io_uring_unregister_buffers(&io->threads[done].ring);
    free(io->pinned);
    io->pinned = NULL;
    return false;
}
