#include "engine/store/swap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "base/text.h"
#include "engine/store/swap_directory.h"

/* Two, since filling the state goes through two kinds of it side by side. */
enum { WINDOW_BYTES = 2 << 20, WINDOWS = 2 };

typedef struct swap_window {
    char *memory;
    int64_t at; /* position in the file; -1: empty */
    bool dirty; /* it has changes that the file does not have yet */
} swap_window;

struct engine_swap {
    engine_swap_directory directory;
    engine_io_file file;
    engine_io *io;
    engine_staging *staging; /* NULL: transfers are direct */
    int64_t bytes;
    swap_window windows[WINDOWS];
    int32_t last; /* window used last */
};

static sifr_status check_space(const char *parent, int64_t bytes, sifr_error *error) {
    uint64_t capacity;
    char need[32], have[32];
    BASE_TRY(base_free_space(parent, &capacity, error));
    if ((uint64_t)bytes <= capacity) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: this rank's state takes %s, and %s are free; free some, or give a "
                     "directory on a larger disk",
                     parent, base_format_bytes((uint64_t)bytes, need),
                     base_format_bytes(capacity, have));
}

static sifr_status reserve(const engine_swap *s, const char *parent, sifr_error *error) {
    char need[32];
    int number = posix_fallocate(s->file.descriptor, 0, (off_t)s->bytes);
    if (number == 0) return SIFR_OK;
    return base_fail_errno(error, number, "%s: %s for this rank's state could not be reserved",
                           parent, base_format_bytes((uint64_t)s->bytes, need));
}

static sifr_status take_windows(engine_swap *s, sifr_error *error) {
    for (int w = 0; w < WINDOWS; w++) {
        s->windows[w].at = -1;
        s->windows[w].memory = aligned_alloc(ENGINE_IO_ALIGNMENT, WINDOW_BYTES);
        if (!s->windows[w].memory) return base_fail_alloc(error, WINDOW_BYTES);
    }
    return SIFR_OK;
}

sifr_status engine_swap_open(const char *parent, int32_t rank, int64_t bytes,
                             const engine_io_settings *settings, int32_t transfers,
                             engine_swap **out, sifr_error *error) {
    base_assert(bytes > 0);
    engine_swap *s;
    sifr_status status;
    BASE_TRY(base_alloc(1, sizeof *s, &s, error));
    s->bytes = base_ceil_to(bytes, ENGINE_IO_ALIGNMENT);
    BASE_TRY_GOTO(status, take_windows(s, error), fail);
    BASE_TRY_GOTO(status, engine_swap_directory_make(parent, rank, &s->directory, error), fail);
    BASE_TRY_GOTO(status, check_space(parent, s->bytes, error), fail);
    BASE_TRY_GOTO(status, engine_io_file_open(&s->file, s->directory.state, true, error), fail);
    BASE_TRY_GOTO(status, reserve(s, parent, error), fail);
    BASE_TRY_GOTO(status, engine_io_open(settings, transfers, &s->io, error), fail);
    *out = s;
    return SIFR_OK;
fail:
    engine_swap_close(s);
    return status;
}

void engine_swap_close(engine_swap *s) {
    if (!s) return;
    engine_staging_close(s->staging);
    engine_io_close(s->io);
    engine_io_file_close(&s->file);
    engine_swap_directory_remove(&s->directory);
    for (int w = 0; w < WINDOWS; w++) free(s->windows[w].memory);
    free(s);
}

sifr_status engine_swap_stage(engine_swap *s, device *dev, const int64_t bytes[2],
                              int32_t transfers, sifr_error *error) {
    base_assert(!s->staging);
    return engine_staging_open(dev, s->io, &s->file, bytes, transfers, &s->staging, error);
}

engine_staging *engine_swap_staging(const engine_swap *s) {
    return s->staging;
}

engine_io *engine_swap_io(engine_swap *s) {
    return s->io;
}

const engine_io_file *engine_swap_file(const engine_swap *s) {
    return &s->file;
}

const char *engine_swap_describe(const engine_swap *s, char *out, size_t size) {
    char bytes[32];
    const char *end = strrchr(s->directory.path, '/');
    base_assert(end); /* it lies in its parent */
    snprintf(out, size, "%s in %.*s, by %s%s", base_format_bytes((uint64_t)s->bytes, bytes),
             (int)(end - s->directory.path), s->directory.path,
             engine_io_uses_rings(s->io) ? "io_uring" : "plain reads and writes",
             s->file.direct ? " past the page cache" : "");
    return out;
}

static int64_t window_bytes(const engine_swap *s, const swap_window *w) {
    base_assert(w->at >= 0 && w->at < s->bytes);
    return base_min_i64(WINDOW_BYTES, s->bytes - w->at);
}

static sifr_status save_window(engine_swap *s, swap_window *w, sifr_error *error) {
    engine_io_handle handle;
    if (!w->dirty) return SIFR_OK;
    BASE_TRY(engine_io_start_write(s->io, &s->file, w->at, w->memory, window_bytes(s, w), &handle,
                                   error));
    BASE_TRY(engine_io_wait(s->io, handle, NULL, error));
    w->dirty = false;
    return SIFR_OK;
}

static sifr_status close_window(engine_swap *s, swap_window *w, sifr_error *error) {
    BASE_TRY(save_window(s, w, error));
    w->at = -1;
    return SIFR_OK;
}

/* The plan does not count the windows' memory, so it is released before steps. */
sifr_status engine_swap_flush(engine_swap *s, sifr_error *error) {
    for (int i = 0; i < WINDOWS; i++) {
        swap_window *w = &s->windows[i];
        if (w->at < 0) continue;
        BASE_TRY(close_window(s, w, error));
        (void)madvise(w->memory, WINDOW_BYTES, MADV_DONTNEED);
    }
    return SIFR_OK;
}

/* The window that covers the byte at `offset`; if there is none, reuses the one not used last. */
static sifr_status show(engine_swap *s, int64_t offset, swap_window **out, sifr_error *error) {
    engine_io_handle handle;
    int64_t at = offset / WINDOW_BYTES * WINDOW_BYTES;
    for (int32_t i = 0; i < WINDOWS; i++) {
        if (s->windows[i].at != at) continue;
        s->last = i;
        *out = &s->windows[i];
        return SIFR_OK;
    }
    s->last = (s->last + 1) % WINDOWS;
    swap_window *w = *out = &s->windows[s->last];
    BASE_TRY(close_window(s, w, error));
    int64_t bytes = base_min_i64(WINDOW_BYTES, s->bytes - at);
    BASE_TRY(engine_io_start_read(s->io, &s->file, at, w->memory, bytes, &handle, error));
    BASE_TRY(engine_io_wait(s->io, handle, NULL, error));
    w->at = at;
    return SIFR_OK;
}

sifr_status engine_swap_read(engine_swap *s, int64_t offset, void *out, int64_t bytes,
                             sifr_error *error) {
    base_assert(offset >= 0 && offset + bytes <= s->bytes);
    swap_window *w;
    for (int64_t done = 0, some; done < bytes; done += some) {
        BASE_TRY(show(s, offset + done, &w, error));
        int64_t skip = offset + done - w->at;
        some = base_min_i64(bytes - done, window_bytes(s, w) - skip);
        memcpy((char *)out + done, w->memory + skip, (size_t)some);
    }
    return SIFR_OK;
}

sifr_status engine_swap_write(engine_swap *s, int64_t offset, const void *from, int64_t bytes,
                              sifr_error *error) {
    base_assert(offset >= 0 && offset + bytes <= s->bytes);
    swap_window *w;
    for (int64_t done = 0, some; done < bytes; done += some) {
        BASE_TRY(show(s, offset + done, &w, error));
        int64_t skip = offset + done - w->at;
        some = base_min_i64(bytes - done, window_bytes(s, w) - skip);
        memcpy(w->memory + skip, (const char *)from + done, (size_t)some);
        w->dirty = true;
    }
    return SIFR_OK;
}
