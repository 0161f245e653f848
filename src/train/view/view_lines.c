#include "train/view/view_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/heap.h"

enum { LINE_BYTES = 1 << 16, PIECE_BYTES = 1 << 20 };

static sifr_status fill(train_view_reader *r, size_t *got, sifr_error *error) {
    ssize_t count;
    do {
        count = read(r->descriptor, r->buffer + r->filled, PIECE_BYTES - r->filled);
    } while (count < 0 && errno == EINTR);
    if (count < 0) return base_fail_errno(error, errno, "%s: cannot read", r->path);
    *got = (size_t)count;
    r->filled += *got;
    return SIFR_OK;
}

/* Keeps what is behind the last line feed; *out counts. */
static sifr_status hand_on(train_view_reader *r, void *user,
                           sifr_status (*take)(void *, const char *, size_t, sifr_error *),
                           train_view_lines *out, sifr_error *error) {
    static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8: some editors put it there */
    char *line = r->buffer, *end = r->buffer + r->filled, *stop;
    bool marked = !out->lines && !r->inside && r->filled >= 3 && memcmp(line, mark, 3) == 0;
    if (marked && memchr(line, '\n', r->filled)) line += 3;
    for (; line < end && (stop = memchr(line, '\n', (size_t)(end - line))); line = stop + 1) {
        bool whole = !r->inside && stop - line <= LINE_BYTES;
        r->inside = false;
        out->lines++;
        if (!whole) out->passed++;
        if (whole) BASE_TRY(take(user, line, (size_t)(stop - line), error));
    }
    r->filled = (size_t)(end - line);
    if (r->filled > LINE_BYTES || r->inside) {
        r->inside = r->inside || r->filled > 0;
        r->filled = 0;
    }
    memmove(r->buffer, line, r->filled);
    return SIFR_OK;
}

sifr_status train_view_reader_open(train_view_reader *r, const char *path, sifr_error *error) {
    uint64_t size;
    *r = (train_view_reader){.descriptor = -1, .path = path};
    BASE_TRY(base_open_read(path, &r->descriptor, &size, error));
    sifr_status status = base_alloc(PIECE_BYTES, 1, &r->buffer, error);
    if (status != SIFR_OK) train_view_reader_close(r);
    return status;
}

void train_view_reader_close(train_view_reader *r) {
    free(r->buffer);
    if (r->path && r->descriptor >= 0) close(r->descriptor);
    *r = (train_view_reader){0};
}

sifr_status train_view_reader_take(train_view_reader *r, uint64_t most, void *user,
                                   sifr_status (*take)(void *user, const char *line, size_t size,
                                                       sifr_error *error),
                                   train_view_lines *out, bool *end, sifr_error *error) {
    size_t got = 1;
    for (uint64_t sum = 0; got && sum < most; sum += got) {
        BASE_TRY(fill(r, &got, error));
        BASE_TRY(hand_on(r, user, take, out, error));
    }
    out->rest = r->inside ? LINE_BYTES : r->filled;
    *end = !got;
    return SIFR_OK;
}

sifr_status train_view_each_line(const char *path, void *user,
                                 sifr_status (*take)(void *user, const char *line, size_t size,
                                                     sifr_error *error),
                                 train_view_lines *out, sifr_error *error) {
    train_view_reader r;
    bool end;
    *out = (train_view_lines){0};
    BASE_TRY(train_view_reader_open(&r, path, error));
    sifr_status status = train_view_reader_take(&r, UINT64_MAX, user, take, out, &end, error);
    train_view_reader_close(&r);
    return status;
}
