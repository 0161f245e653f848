#include "train/report/kept_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/heap.h"
#include "base/text.h"

static sifr_status wrong_write(const char *path, sifr_error *error) {
    return base_fail_errno(error, errno ? errno : EIO, "%s: cannot write", path);
}

static bool name_beside(const char *path, char temporary[BASE_PATH_LENGTH]) {
    int used = snprintf(temporary, BASE_PATH_LENGTH, "%s.tmp-%ld", path, (long)getpid());
    return used >= 0 && used < BASE_PATH_LENGTH;
}

sifr_status train_lines_open(train_lines *lines, const char *output, const char *name,
                             sifr_error *error) {
    char path[BASE_PATH_LENGTH], temporary[BASE_PATH_LENGTH];
    *lines = (train_lines){0};
    BASE_TRY(base_path_join(path, output, name, error));
    BASE_TRY(base_copy_text(path, strlen(path), &lines->path, error));
    if (!name_beside(path, temporary))
        return base_fail(error, SIFR_USAGE, "%.200s…: path too long", path);
    errno = 0;
    lines->file = fopen(temporary, "we");
    return lines->file ? SIFR_OK : wrong_write(path, error);
}

sifr_status train_lines_place(train_lines *lines, sifr_error *error) {
    char temporary[BASE_PATH_LENGTH];
    errno = 0;
    if (name_beside(lines->path, temporary) && rename(temporary, lines->path) == 0) return SIFR_OK;
    return wrong_write(lines->path, error);
}

void train_lines_close(train_lines *lines) {
    char temporary[BASE_PATH_LENGTH];
    if (lines->file) fclose(lines->file);
    /* What is left of a torn line stays where the disk refuses that, too. */
    if (lines->drops && lines->behind && !lines->gone && truncate(lines->path, lines->bytes) != 0)
        errno = 0;
    if (lines->path && !lines->drops && name_beside(lines->path, temporary)) unlink(temporary);
    free(lines->path);
    free(lines->pending);
    *lines = (train_lines){0};
}

/* What is written then goes with the file, though the system takes it. */
static bool is_deleted(const train_lines *lines) {
    struct stat about;
    return fstat(fileno(lines->file), &about) == 0 && about.st_nlink == 0;
}

static sifr_status write_text(train_lines *lines, const char *text, size_t size,
                              sifr_error *error) {
    errno = 0;
    if (fwrite(text, 1, size, lines->file) != size || fflush(lines->file) != 0)
        return wrong_write(lines->path, error);
    lines->gone = is_deleted(lines);
    if (lines->gone)
        return base_fail(error, SIFR_FAILED, "%s: deleted while the run writes it", lines->path);
    lines->bytes = ftell(lines->file);
    return SIFR_OK;
}

/* Opens the file behind its last whole line: what closing it has still written of a torn one goes.
 */
static sifr_status open_behind(train_lines *lines, sifr_error *error) {
    struct stat about;
    if (lines->file) fclose(lines->file);
    errno = 0;
    /* A FIFO that nobody reads would hold up the run. */
    int file = open(lines->path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    bool there = file >= 0 && fstat(file, &about) == 0 &&
                 (about.st_size <= lines->bytes || ftruncate(file, lines->bytes) == 0);
    lines->file = there ? fdopen(file, "w") : NULL;
    bool opened = lines->file && fseek(lines->file, 0, SEEK_END) == 0;
    if (opened) lines->gone = false;
    if (opened) return SIFR_OK;
    sifr_status status = wrong_write(lines->path, error);
    if (!lines->file && file >= 0) close(file);
    return status;
}

sifr_status train_lines_go_on(train_lines *lines, const char *path, int64_t bytes,
                              sifr_error *error) {
    *lines = (train_lines){.bytes = bytes, .drops = true};
    sifr_status status = base_copy_text(path, strlen(path), &lines->path, error);
    if (status == SIFR_OK) status = open_behind(lines, error);
    if (status != SIFR_OK) train_lines_close(lines);
    return status;
}

static sifr_status catch_up(train_lines *lines, sifr_error *error) {
    BASE_TRY(open_behind(lines, error));
    BASE_TRY(write_text(lines, lines->pending, lines->pending_bytes, error));
    free(lines->pending);
    lines->pending = NULL;
    lines->pending_bytes = 0;
    return SIFR_OK;
}

/* Closing the file may write another half of a line. */
static void cut_torn_line(train_lines *lines) {
    if (lines->file) fclose(lines->file);
    lines->file = NULL;
    if (!lines->gone && truncate(lines->path, lines->bytes) != 0) errno = 0;
}

static int64_t count_lines(const char *text, size_t size) {
    int64_t count = 0;
    for (size_t i = 0; i < size; i++) count += text[i] == '\n';
    return count;
}

bool train_lines_lack(train_lines *lines, char line[SIFR_ERROR_LENGTH]) {
    sifr_error error = {0};
    char counted[80];
    if (!lines->behind || catch_up(lines, &error) == SIFR_OK) return lines->behind = false;
    cut_torn_line(lines);
    int64_t count = count_lines(lines->pending, lines->pending_bytes);
    snprintf(line, SIFR_ERROR_LENGTH, "lost: the last %s: %.900s",
             base_format_counted(count, "record", counted), error.message);
    return true;
}

static sifr_status hold_back(train_lines *lines, const char *text, size_t size, sifr_error *error) {
    char *pending = realloc(lines->pending, lines->pending_bytes + size);
    if (!pending) return base_fail_alloc(error, lines->pending_bytes + size);
    memcpy(pending + lines->pending_bytes, text, size);
    lines->pending = pending;
    lines->pending_bytes += size;
    return SIFR_OK;
}

static sifr_status add_or_drop(train_lines *lines, const char *text, size_t size,
                               sifr_error *error) {
    sifr_status status = lines->behind ? open_behind(lines, error) : SIFR_OK;
    if (status == SIFR_OK) status = write_text(lines, text, size, error);
    lines->behind = status != SIFR_OK;
    return status;
}

sifr_status train_lines_add(train_lines *lines, const char *text, size_t size, sifr_error *error) {
    sifr_status status = SIFR_FAILED;
    if (lines->drops) return add_or_drop(lines, text, size, error);
    if (!lines->behind && (status = write_text(lines, text, size, error)) == SIFR_OK)
        return SIFR_OK;
    BASE_TRY(hold_back(lines, text, size, error));
    if (lines->behind) status = catch_up(lines, error);
    lines->behind = status != SIFR_OK;
    return status;
}

sifr_status train_lines_read(const char *path,
                             sifr_status (*each)(void *user, const json_t *record,
                                                 sifr_error *error),
                             void *user, sifr_error *error) {
    base_map map;
    if (!base_is_file(path)) return SIFR_OK;
    BASE_TRY(base_map_file(path, &map, error));
    static const char nothing[] = ""; /* an empty file has no address */
    const char *line = map.size ? (const char *)map.data : nothing, *end = line + map.size, *stop;
    sifr_status status = SIFR_OK;
    if (map.size >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) line += 3; /* an editor's mark */
    while (status == SIFR_OK && line < end && (stop = memchr(line, '\n', (size_t)(end - line)))) {
        json_t *record = json_loadb(line, (size_t)(stop - line), JSON_REJECT_DUPLICATES, NULL);
        if (record) status = each(user, record, error);
        json_decref(record);
        line = stop + 1;
    }
    base_unmap(&map);
    return status;
}
