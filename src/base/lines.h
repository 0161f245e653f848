/* Lines of small files of the system (/proc, /sys), read without the allocator: these files tell
 * how much memory is left, and are read where there may be none. */
#ifndef BASE_LINES_H
#define BASE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct base_lines {
    int descriptor;
    bool whole; /* the last line fitted */
    size_t at, filled;
    char buffer[512];
} base_lines;

/* False where the file cannot be opened; nothing is to be closed then. */
bool base_lines_open(base_lines *lines, const char *path);

/* The next line into out[size], without its newline; one that is longer is cut. False at the end,
 * or where the file cannot be read on. */
bool base_lines_next(base_lines *lines, char *out, size_t size);
void base_lines_close(base_lines *lines);

/* The first line of a file; false, and "", where it cannot be read. */
bool base_read_line(const char *path, char *out, size_t size);

/* What stands behind "KEY:", and blanks, in the first line that begins with `key`; false, and `out`
 * untouched, where there is none. */
bool base_read_field(const char *path, const char *key, char *out, size_t size);

/* Such a field that the file has in kilobytes, as bytes. False, and *bytes untouched, where it
 * cannot be read or is no number. */
bool base_read_kilobytes(const char *path, const char *key, uint64_t *bytes);

#endif
