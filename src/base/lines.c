#include "base/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"

bool base_lines_open(base_lines *lines, const char *path) {
    lines->descriptor = open(path, O_RDONLY | O_CLOEXEC);
    lines->at = lines->filled = 0;
    lines->whole = true;
    return lines->descriptor >= 0;
}

static bool fill(base_lines *lines) {
    ssize_t got;
    do {
        got = read(lines->descriptor, lines->buffer, sizeof lines->buffer);
    } while (got < 0 && errno == EINTR);
    lines->at = 0;
    lines->filled = got > 0 ? (size_t)got : 0;
    return got > 0;
}

bool base_lines_next(base_lines *lines, char *out, size_t size) {
    base_assert(size > 0);
    size_t used = 0;
    bool some = false;
    lines->whole = true;
    while (lines->at < lines->filled || fill(lines)) {
        char c = lines->buffer[lines->at++];
        some = true;
        if (c == '\n') break;
        if (used + 1 < size)
            out[used++] = c;
        else
            lines->whole = false;
    }
    out[used] = '\0';
    return some;
}

void base_lines_close(base_lines *lines) {
    close(lines->descriptor);
}

bool base_read_line(const char *path, char *out, size_t size) {
    base_lines lines;
    out[0] = '\0';
    if (!base_lines_open(&lines, path)) return false;
    bool read = base_lines_next(&lines, out, size);
    base_lines_close(&lines);
    return read;
}

bool base_read_field(const char *path, const char *key, char *out, size_t size) {
    base_lines lines;
    char line[1024];
    bool found = false;
    if (!base_lines_open(&lines, path)) return false;
    while (!found && base_lines_next(&lines, line, sizeof line)) {
        if (strncmp(line, key, strlen(key)) != 0) continue;
        const char *value = strchr(line, ':');
        if (!value) continue;
        value += 1 + strspn(value + 1, " \t");
        snprintf(out, size, "%s", value);
        found = true;
    }
    base_lines_close(&lines);
    return found;
}

bool base_read_kilobytes(const char *path, const char *key, uint64_t *bytes) {
    char value[64], *end;
    if (!base_read_field(path, key, value, sizeof value)) return false;
    uint64_t kilobytes = strtoull(value, &end, 10);
    if (end == value || value[0] == '-') return false;
    *bytes = kilobytes * 1024;
    return true;
}
