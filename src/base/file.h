/* Regular files: read whole or mapped, and written so that a kill loses none. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

#define BASE_PATH_LENGTH 4096

/* Writes `directory`/`name` into out[BASE_PATH_LENGTH]; SIFR_USAGE if the path is too long. */
sifr_status base_path_join(char *out, const char *directory, const char *name,
                           sifr_error *error) SIFR_MUST_CHECK;

bool base_is_file(const char *path); /* a regular file (links are followed) */
bool base_has_file(const char *directory, const char *name); /* a regular file of that name there */
bool base_is_directory(const char *path);                    /* likewise */

/* What a message says behind a path that is not there: that no shell has replaced its "~", as in a
 * config and in `--data=~/x`; else "". */
const char *base_home_hint(const char *path);

/* mkdir -p. */
sifr_status base_make_directories(const char *path, sifr_error *error) SIFR_MUST_CHECK;

/* Removes a file or a directory tree; a missing path is no error. Links are removed, never
 * followed. */
sifr_status base_remove_tree(const char *path, sifr_error *error) SIFR_MUST_CHECK;

/* Lists the names in a directory, without "." and "..", sorted bytewise. Free with
 * base_free_names. */
sifr_status base_list_directory(const char *path, char ***names, size_t *count,
                                sifr_error *error) SIFR_MUST_CHECK;
void base_free_names(char **names, size_t count);

/* Opens a regular file for reading; FIFOs, devices and directories are refused without blocking.
 * The descriptor belongs to the caller. */
sifr_status base_open_read(const char *path, int *descriptor, uint64_t *size,
                           sifr_error *error) SIFR_MUST_CHECK;

/* Reads the whole file and appends a NUL; SIFR_FAILED if it has more than `limit` bytes. Free with
 * free(). */
sifr_status base_read_file(const char *path, size_t limit, char **data, size_t *size,
                           sifr_error *error) SIFR_MUST_CHECK;

/* A file mapped for reading. An empty file has data == NULL. */
typedef struct base_map {
    const uint8_t *data;
    size_t size;
} base_map;

sifr_status base_map_file(const char *path, base_map *map, sifr_error *error) SIFR_MUST_CHECK;
void base_unmap(base_map *map); /* no effect on a zeroed map */

/* For mapped files that are read once, from front to back, while memory may be short.
 * base_read_by_pieces turns off the kernel's own read-ahead, which may exceed the free memory (8
 * MiB on some disks) and is repeated for each page. base_read_ahead reads ahead a given range
 * instead. */
void base_read_by_pieces(const base_map *map);
void base_read_ahead(const void *data, size_t size);

/* Writes all of `size` bytes at the descriptor's position, through EINTR and short writes. */
sifr_status base_write_all(int descriptor, const void *data, size_t size, const char *path,
                           sifr_error *error) SIFR_MUST_CHECK;

/* A file being written beside its final name: bytes go to `<path>.tmp-<pid>`; commit checks,
 * fsyncs, renames and fsyncs the directory; abort removes what was written. */
typedef struct base_writer {
    int descriptor;
    uint64_t written; /* bytes, including those still in the buffer */
    size_t filled;
    uint8_t *buffer;
    char path[BASE_PATH_LENGTH];
    char temporary[BASE_PATH_LENGTH];
} base_writer;

sifr_status base_writer_open(base_writer *writer, const char *path,
                             sifr_error *error) SIFR_MUST_CHECK;
sifr_status base_writer_write(base_writer *writer, const void *data, size_t size,
                              sifr_error *error) SIFR_MUST_CHECK;
sifr_status base_writer_commit(base_writer *writer, sifr_error *error) SIFR_MUST_CHECK;
void base_writer_abort(base_writer *writer); /* no effect after commit, or on a zeroed writer */

/* Writes a small file through a base_writer. */
sifr_status base_write_file(const char *path, const void *data, size_t size,
                            sifr_error *error) SIFR_MUST_CHECK;

/* Copies a regular file byte for byte, through a base_writer. */
sifr_status base_copy_file(const char *from, const char *to, sifr_error *error) SIFR_MUST_CHECK;

/* Syncs a directory, which makes renames in it durable. */
sifr_status base_sync_directory(const char *path, sifr_error *error) SIFR_MUST_CHECK;

/* Bytes free for this user on the file system that holds `path`. */
sifr_status base_free_space(const char *path, uint64_t *bytes, sifr_error *error) SIFR_MUST_CHECK;

#endif
