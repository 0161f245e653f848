#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "base/thread.h"
#include "comm/comm.h"
#include "engine/store/async_io_private.h"

/* Without rings each thread moves one block; more threads than this help no disk. */
enum { MOST_PLAIN_THREADS = 16 };

sifr_status engine_io_file_open(engine_io_file *file, const char *path, bool create,
                                sifr_error *error) {
    int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT | O_EXCL : 0);
    *file = (engine_io_file){.descriptor = -1};
    if (strlen(path) >= sizeof file->path)
        return base_fail(error, SIFR_USAGE, "%.64s...: the path is too long", path);
    strcpy(file->path, path);
    file->descriptor = open(path, flags | O_DIRECT, 0600);
    file->direct = file->descriptor >= 0;
    if (file->descriptor < 0 &&
        errno == EINVAL) { /* the file may have been created before the failure */
        file->descriptor = open(path, flags & ~O_EXCL, 0600);
    }
    if (file->descriptor < 0) return base_fail_errno(error, errno, "%s: cannot open", path);
    return SIFR_OK;
}

void engine_io_file_close(engine_io_file *file) {
    if (file->path[0] && file->descriptor >= 0) close(file->descriptor);
    file->descriptor = -1;
}

/* --- opening and closing --- */

static sifr_status check_settings(const engine_io_settings *s, int32_t transfers,
                                  sifr_error *error) {
    bool block = s->block_bytes >= ENGINE_IO_ALIGNMENT && s->block_bytes <= 1 << 30 &&
                 s->block_bytes % ENGINE_IO_ALIGNMENT == 0;
    if (block && s->queue_depth >= 1 && s->queue_depth <= 4096 && s->threads >= 1 &&
        s->threads <= 256 && transfers >= 1)
        return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "aio: block_size must be a multiple of %d bytes, up to 1 GiB, queue_depth 1 "
                     "to 4096, intra_op_parallelism 1 to 256",
                     (int)ENGINE_IO_ALIGNMENT);
}

static sifr_status open_rings(engine_io *io, sifr_error *error) {
    BASE_TRY(base_alloc((size_t)io->settings.threads, sizeof *io->threads, &io->threads, error));
    for (; io->thread_count < io->settings.threads; io->thread_count++) {
        io_thread *thread = &io->threads[io->thread_count];
        size_t depth = (size_t)io->settings.queue_depth;
        thread->io = io;
        BASE_TRY(base_alloc(depth, sizeof *thread->blocks, &thread->blocks, error));
        sifr_status status = base_alloc(depth, sizeof *thread->idle, &thread->idle, error);
        if (status != SIFR_OK || !io_ring_open(thread)) {
            io_ring_close(thread);
            return status;
        }
    }
    return SIFR_OK;
}

static void close_rings(engine_io *io) {
    for (int32_t i = 0; i < io->thread_count; i++) io_ring_close(&io->threads[i]);
    free(io->threads);
    io->threads = NULL;
    io->thread_count = 0;
}

/* Opens rings for all threads; if that fails, starts a plain thread for each block that would be in
 * progress. */
static sifr_status choose_way(engine_io *io, sifr_error *error) {
    const engine_io_settings *s = &io->settings;
    if (!s->plain) BASE_TRY(open_rings(io, error));
    io->rings = io->thread_count == s->threads;
    if (io->rings) return SIFR_OK;
    close_rings(io);
    int64_t count = base_min_i64((int64_t)s->threads * s->queue_depth, MOST_PLAIN_THREADS);
    BASE_TRY(base_alloc((size_t)count, sizeof *io->threads, &io->threads, error));
    io->thread_count = (int32_t)count;
    for (int32_t i = 0; i < io->thread_count; i++) io->threads[i].io = io;
    return SIFR_OK;
}

static sifr_status start_threads(engine_io *io, sifr_error *error) {
    int result = 0;
    for (int32_t i = 0; i < io->thread_count && result == 0; i++) {
        io_thread *thread = &io->threads[i];
        void *(*run)(void *) = io->rings ? io_ring_run : io_plain_run;
        result = base_thread_start(&thread->thread, run, thread);
        thread->running = result == 0;
    }
    if (result == 0) return SIFR_OK;
    return base_fail_errno(error, result, "file I/O: cannot start a thread");
}

sifr_status engine_io_open(const engine_io_settings *settings, int32_t transfers, engine_io **out,
                           sifr_error *error) {
    engine_io *io;
    sifr_status status;
    BASE_TRY(check_settings(settings, transfers, error));
    BASE_TRY(base_alloc(1, sizeof *io, &io, error));
    io->settings = *settings;
    io->capacity = transfers;
    pthread_mutex_init(&io->lock, NULL);
    pthread_cond_init(&io->changed, NULL);
    size_t capacity = (size_t)transfers;
    BASE_TRY_GOTO(status, base_alloc(capacity, sizeof *io->transfers, &io->transfers, error), fail);
    for (int32_t l = 0; l < 2; l++) {
        int32_t **line = &io->lines[l].transfers;
        BASE_TRY_GOTO(status, base_alloc(capacity, sizeof **line, line, error), fail);
    }
    BASE_TRY_GOTO(status, choose_way(io, error), fail);
    BASE_TRY_GOTO(status, start_threads(io, error), fail);
    *out = io;
    return SIFR_OK;
fail:
    engine_io_close(io);
    return status;
}

void engine_io_close(engine_io *io) {
    if (!io) return;
    pthread_mutex_lock(&io->lock);
    io->stop = true;
    pthread_cond_broadcast(&io->changed);
    pthread_mutex_unlock(&io->lock);
    for (int32_t i = 0; i < io->thread_count; i++) {
        if (io->threads[i].running) pthread_join(io->threads[i].thread, NULL);
    }
    close_rings(io);
    pthread_cond_destroy(&io->changed);
    pthread_mutex_destroy(&io->lock);
    free(io->transfers);
    for (int32_t l = 0; l < 2; l++) free(io->lines[l].transfers);
    free(io->pinned);
    free(io);
}

bool engine_io_uses_rings(const engine_io *io) {
    return io->rings;
}

void engine_io_count(const engine_io *io, int64_t *read, int64_t *written) {
    *read = io->read;
    *written = io->written;
}

/* --- transfers --- */

static sifr_status start(engine_io *io, io_transfer transfer, engine_io_handle *handle,
                         sifr_error *error) {
    uint64_t odd =
        (uint64_t)transfer.offset | (uint64_t)transfer.bytes | (uint64_t)(uintptr_t)transfer.memory;
    if (transfer.bytes <= 0 || transfer.offset < 0 ||
        (transfer.file->direct && odd % ENGINE_IO_ALIGNMENT))
        return base_fail(error, SIFR_FAILED, "%s: %lld bytes at %lld are not aligned for O_DIRECT",
                         transfer.file->path, (long long)transfer.bytes,
                         (long long)transfer.offset);
    transfer.left = transfer.bytes;
    transfer.taken = true;
    pthread_mutex_lock(&io->lock);
    int32_t place = 0;
    while (place < io->capacity && io->transfers[place].taken) place++;
    if (place < io->capacity) {
        io->transfers[place] = transfer;
        io_join_line(io, transfer.write, place);
        pthread_cond_broadcast(&io->changed);
    }
    pthread_mutex_unlock(&io->lock);
    *handle = place;
    *(transfer.write ? &io->written : &io->read) += place < io->capacity ? transfer.bytes : 0;
    if (place < io->capacity) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "file I/O: more than %d transfers in progress",
                     (int)io->capacity);
}

sifr_status engine_io_start_read(engine_io *io, const engine_io_file *file, int64_t offset,
                                 void *memory, int64_t bytes, engine_io_handle *handle,
                                 sifr_error *error) {
    io_transfer t = {.file = file, .memory = memory, .offset = offset, .bytes = bytes};
    return start(io, t, handle, error);
}

sifr_status engine_io_start_write(engine_io *io, const engine_io_file *file, int64_t offset,
                                  const void *memory, int64_t bytes, engine_io_handle *handle,
                                  sifr_error *error) {
    io_transfer t = {.file = file,
                     .memory = (char *)(uintptr_t)memory, /* only read from */
                     .offset = offset,
                     .bytes = bytes,
                     .write = true};
    return start(io, t, handle, error);
}

static sifr_status report(const io_transfer *t, sifr_error *error) {
    const char *verb = t->write ? "writing" : "reading";
    if (!t->failed) return SIFR_OK;
    if (t->number)
        return base_fail_errno(error, t->number, "%s: %s at byte %lld failed", t->file->path, verb,
                               (long long)t->where);
    return base_fail(error, SIFR_FAILED, "%s: the file ends before byte %lld, which was to be read",
                     t->file->path, (long long)t->where);
}

bool engine_io_is_over(engine_io *io, engine_io_handle handle) {
    base_assert(handle >= 0 && handle < io->capacity);
    const io_transfer *t = &io->transfers[handle];
    pthread_mutex_lock(&io->lock);
    bool over = t->left == 0;
    pthread_mutex_unlock(&io->lock);
    return over;
}

sifr_status engine_io_wait(engine_io *io, engine_io_handle handle, engine_io_times *times,
                           sifr_error *error) {
    io_transfer *t = &io->transfers[handle];
    pthread_mutex_lock(&io->lock);
    base_assert(t->taken); /* it is waited for once */
    while (t->taken && t->left > 0) pthread_cond_wait(&io->changed, &io->lock);
    while (t->taken && t->left > 0) pthread_cond_wait(&io->changed, &io->lock);
    io_transfer over = *t;
    t->taken = false;
    pthread_mutex_unlock(&io->lock);
    if (times) *times = over.times;
    return report(&over, error);
}
