/* Lines of small system files (/proc, /sys), read without allocating: these files are read when
 * memory may be exhausted. */
#ifndef BASE_LINES_H
#define BASE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct base_lines {
    int descriptor;
    bool whole; /* the last line was not cut */
    size_t at, filled;
    char buffer[512];
} base_lines;

/* False if the file cannot be opened; then there is nothing to close. */
bool base_lines_open(base_lines *lines, const char *path);

/* Reads the next line into out[size], without its newline; a longer line is cut. False at the end
 * of the file, or on a read error. */
bool base_lines_next(base_lines *lines, char *out, size_t size);
void base_lines_close(base_lines *lines);

/* Reads the first line of a file; false, with `out` = "", if the file cannot be read. */
bool base_read_line(const char *path, char *out, size_t size);

/* Reads the value after "KEY:" and blanks, in the first line that begins with `key`. False, with
 * `out` untouched, if there is no such line. */
bool base_read_field(const char *path, const char *key, char *out, size_t size);

/* Reads a field that the file has in kilobytes, in bytes. False, with *bytes untouched, if the
 * field cannot be read or is not a number. */
bool base_read_kilobytes(const char *path, const char *key, uint64_t *bytes);

#endif
