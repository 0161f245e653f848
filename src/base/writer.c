/* Files that appear whole or not at all: base_writer of file.h. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/heap.h"

enum { BASE_WRITER_BUFFER = 1 << 18 };

sifr_status base_write_all(int descriptor, const void *data, size_t size, const char *path,
                           sifr_error *error) {
    const uint8_t *at = data;
    while (size) {
        ssize_t put = write(descriptor, at, size);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return base_fail_errno(error, errno, "%s: cannot write", path);
        at += put;
        size -= (size_t)put;
    }
    return SIFR_OK;
}

/* A file takes the place of what is there: never of a device, a FIFO or a socket (/dev/null would
 * be a file from then on, for all programs), nor of a link to one. A link to a file, or to nothing,
 * goes. */
static sifr_status check_place(const char *path, sifr_error *error) {
    struct stat there;
    if (lstat(path, &there) != 0 || S_ISREG(there.st_mode)) return SIFR_OK;
    bool link = S_ISLNK(there.st_mode);
    if (link && (stat(path, &there) != 0 || S_ISREG(there.st_mode) || S_ISDIR(there.st_mode)))
        return SIFR_OK;
    if (S_ISDIR(there.st_mode))
        return base_fail(error, SIFR_FAILED,
                         "%s: a directory, and a file of this name is to be written; remove it, or "
                         "name another output",
                         path);
    return base_fail(error, SIFR_FAILED,
                     "%s: a device or pipe, and a file would take its place; name another output",
                     path);
}

sifr_status base_writer_open(base_writer *writer, const char *path, sifr_error *error) {
    memset(writer, 0, sizeof *writer);
    writer->descriptor = -1;
    int used =
        snprintf(writer->temporary, sizeof writer->temporary, "%s.tmp-%ld", path, (long)getpid());
    if (used < 0 || (size_t)used >= sizeof writer->temporary) {
        return base_fail(error, SIFR_USAGE, "%.200s…: path too long", path);
    }
    strcpy(writer->path, path);
    BASE_TRY(check_place(path, error));
    BASE_TRY(base_alloc(BASE_WRITER_BUFFER, 1, &writer->buffer, error));
    writer->descriptor =
        open(writer->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (writer->descriptor < 0) {
        int number = errno;
        free(writer->buffer);
        writer->buffer = NULL;
        return base_fail_errno(error, number, "%s: cannot create", path);
    }
    return SIFR_OK;
}

static sifr_status base_writer_flush(base_writer *writer, sifr_error *error) {
    size_t size = writer->filled;
    writer->filled = 0;
    return base_write_all(writer->descriptor, writer->buffer, size, writer->path, error);
}

sifr_status base_writer_write(base_writer *writer, const void *data, size_t size,
                              sifr_error *error) {
    writer->written += size;
    if (size >= BASE_WRITER_BUFFER) {
        BASE_TRY(base_writer_flush(writer, error));
        return base_write_all(writer->descriptor, data, size, writer->path, error);
    }
    if (size > BASE_WRITER_BUFFER - writer->filled) BASE_TRY(base_writer_flush(writer, error));
    if (size) memcpy(writer->buffer + writer->filled, data, size);
    writer->filled += size;
    return SIFR_OK;
}

sifr_status base_writer_commit(base_writer *writer, sifr_error *error) {
    sifr_status status;
    BASE_TRY_GOTO(status, base_writer_flush(writer, error), fail);
    if (fsync(writer->descriptor) != 0) {
        status = base_fail_errno(error, errno, "%s: cannot sync", writer->path);
        goto fail;
    }
    int closed = close(writer->descriptor);
    writer->descriptor = -1;
    if (closed != 0 || rename(writer->temporary, writer->path) != 0) {
        status = base_fail_errno(error, errno, "%s: cannot finish", writer->path);
        unlink(writer->temporary);
        goto fail;
    }
    free(writer->buffer);
    writer->buffer = NULL;
    char directory[BASE_PATH_LENGTH];
    strcpy(directory, writer->path);
    return base_sync_directory(dirname(directory), error);
fail:
    base_writer_abort(writer);
    return status;
}

void base_writer_abort(base_writer *writer) {
    if (writer->buffer && writer->descriptor >= 0) {
        close(writer->descriptor);
        unlink(writer->temporary);
    }
    free(writer->buffer);
    writer->buffer = NULL;
    writer->descriptor = -1;
}

sifr_status base_write_file(const char *path, const void *data, size_t size, sifr_error *error) {
    base_writer writer;
    BASE_TRY(base_writer_open(&writer, path, error));
    sifr_status status = base_writer_write(&writer, data, size, error);
    if (status != SIFR_OK) {
        base_writer_abort(&writer);
        return status;
    }
    return base_writer_commit(&writer, error);
}

sifr_status base_copy_file(const char *from, const char *to, sifr_error *error) {
    base_map map;
    BASE_TRY(base_map_file(from, &map, error));
    sifr_status status = base_write_file(to, map.data, map.size, error);
    base_unmap(&map);
    return status;
}
