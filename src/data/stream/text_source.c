#include "data/stream/text_source.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/heap.h"
#include "data/parquet/parquet.h"
#include "data/records/records.h"

enum { PROBE_BYTES = 8192, DEPTH_LIMIT = 64 };

static sifr_status binary_file(const char *path, uint64_t at, sifr_error *error) {
    return base_fail(
        error, SIFR_FAILED,
        "%s: not text: it has a NUL byte at %llu; give text files, or a token store (of "
        "Megatron or llm.c)",
        path, (unsigned long long)at);
}

static bool ends_with(const char *name, size_t length, const char *end) {
    size_t size = strlen(end);
    return length > size && strncasecmp(name + length - size, end, size) == 0;
}

/* What a file is that is no plain text by its name; NULL for all others. *binary: nothing that can
 * be read as text. */
static const char *kind_of(const char *path, bool *binary) {
    static const char *const packed[] = {".gz", ".zst", ".xz", ".bz2", ".zip"};
    static const struct {
        const char *end, *kind;
        bool binary;
    } kinds[] = {{".json", "JSON", false}, {".jsonl", "JSON", false}, {".ndjson", "JSON", false},
                 {".csv", "CSV", false},   {".tsv", "CSV", false},    {".parquet", "Parquet", true},
                 {".arrow", "Arrow", true}};
    size_t length = strlen(path);
    *binary = false;
    for (size_t i = 0; !*binary && i < sizeof packed / sizeof *packed; i++) {
        *binary = ends_with(path, length, packed[i]);
        if (*binary) length -= strlen(packed[i]);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!ends_with(path, length, kinds[i].end)) continue;
        *binary |= kinds[i].binary;
        return kinds[i].kind;
    }
    return *binary ? "a compressed file" : NULL;
}

const char *data_text_source_records(const data_text_source *source, const char **path) {
    bool binary;
    for (size_t i = 0; i < source->count; i++) {
        *path = source->documents[i].path;
        const char *kind = kind_of(*path, &binary);
        if (kind) return kind;
    }
    return NULL;
}

sifr_status data_text_source_check(const data_text_source *source, sifr_error *error) {
    const char *path, *kind = data_text_source_records(source, &path);
    if (!kind) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: %s is not read as text, since its quotes and field names would be "
                     "trained on; give plain text (.txt), or make a token store with `sifr "
                     "tokenize`, which takes the file as plain text",
                     path, kind);
}

/* A better word than the place of a NUL byte. *rows: a file of rows that is not text. */
static sifr_status check_binary(const data_text_source *source, const char *path, bool *rows,
                                sifr_error *error) {
    bool binary;
    const char *kind = kind_of(path, &binary);
    data_records_kind records;
    size_t length;
    bool parquet = binary && strcmp(kind, "Parquet") == 0;
    bool packed = data_packing_of(path, &length) != DATA_PLAIN;
    bool read = data_records_kind_of(path, &records) && (parquet ? data_parquet_built() : packed);
    *rows = source->rows && read;
    if (!binary || *rows) return SIFR_OK;
    if (read)
        return base_fail(error, SIFR_USAGE,
                         "%s: %s is not read as text, but as rows to fine-tune on or to classify; "
                         "give `sifr train` or `sifr data inspect` files of rows alone",
                         path, packed && !parquet ? "a packed file of rows" : kind);
    if (parquet) return data_parquet_refuse(path, error);
    return base_fail(error, SIFR_USAGE,
                     "%s: %s is not read; unpack or convert it to plain text (.txt), or make a "
                     "token store of the text with `sifr tokenize`",
                     path, kind);
}

static sifr_status append(data_text_source *source, const char *path, uint64_t size,
                          sifr_error *error) {
    BASE_TRY(base_grow(&source->documents, &source->capacity, source->count + 1,
                       sizeof *source->documents, error));
    data_document *document = &source->documents[source->count];
    BASE_TRY(base_copy_text(path, strlen(path), &document->path, error));
    document->size = size;
    source->bytes += size;
    source->count++;
    return SIFR_OK;
}

static sifr_status add_file(data_text_source *source, const char *path, sifr_error *error) {
    uint8_t probe[PROBE_BYTES];
    int file;
    uint64_t size;
    bool rows;
    if (source->names) return append(source, path, 1, error);
    BASE_TRY(check_binary(source, path, &rows, error));
    BASE_TRY(base_open_read(path, &file, &size, error));
    ssize_t got = read(file, probe, sizeof probe);
    int number = errno;
    close(file);
    if (got < 0) return base_fail_errno(error, number, "%s: cannot read", path);
    if (size == 0) {
        source->empty_files++;
        return SIFR_OK;
    }
    if (!rows && got > 1 &&
        (memcmp(probe, "\xff\xfe", 2) == 0 || memcmp(probe, "\xfe\xff", 2) == 0))
        return base_fail(error, SIFR_FAILED, "%s: is UTF-16, not UTF-8; save it as UTF-8", path);
    const uint8_t *nul = rows ? NULL : memchr(probe, 0, (size_t)got);
    if (nul) return binary_file(path, (uint64_t)(nul - probe), error);
    return append(source, path, size, error);
}

static sifr_status add_directory(data_text_source *source, const char *path, int depth,
                                 sifr_error *error) {
    char **names, below[BASE_PATH_LENGTH];
    size_t count;
    struct stat info;
    if (depth > DEPTH_LIMIT) {
        return base_fail(error, SIFR_FAILED, "%s: more than %d directories deep", path,
                         DEPTH_LIMIT);
    }
    BASE_TRY(base_list_directory(path, &names, &count, error));
    sifr_status status = SIFR_OK;
    for (size_t i = 0; i < count; i++) {
        if (names[i][0] == '.') continue;
        BASE_TRY_GOTO(status, base_path_join(below, path, names[i], error), done);
        if (!base_is_directory(below)) {
            BASE_TRY_GOTO(status, add_file(source, below, error), done);
        } else if (lstat(below, &info) == 0 && S_ISLNK(info.st_mode)) {
            source->links++; /* it may lead back to where we are */
        } else {
            BASE_TRY_GOTO(status, add_directory(source, below, depth + 1, error), done);
        }
    }
done:
    base_free_names(names, count);
    return status;
}

static sifr_status add_path(data_text_source *source, const char *path, sifr_error *error) {
    return base_is_directory(path) ? add_directory(source, path, 0, error)
                                   : add_file(source, path, error);
}

static sifr_status add_pattern(data_text_source *source, const char *pattern, sifr_error *error) {
    glob_t found;
    int code = glob(pattern, GLOB_ERR, NULL, &found);
    if (code == GLOB_NOMATCH) {
        return base_fail(error, SIFR_FAILED, "%s: no such file, and no file matches the pattern",
                         pattern);
    }
    if (code != 0) {
        return base_fail(error, code == GLOB_NOSPACE ? SIFR_NO_MEMORY : SIFR_FAILED,
                         "%s: a directory of the pattern cannot be read", pattern);
    }
    sifr_status status = SIFR_OK;
    for (size_t i = 0; status == SIFR_OK && i < found.gl_pathc; i++) {
        status = add_path(source, found.gl_pathv[i], error);
    }
    globfree(&found);
    return status;
}

static sifr_status open_paths(const char *const *paths, size_t count, data_text_source *out,
                              sifr_error *error) {
    struct stat info;
    sifr_status status = SIFR_OK;
    for (size_t i = 0; i < count; i++) {
        bool there = lstat(paths[i], &info) == 0;
        if (there) {
            status = add_path(out, paths[i], error);
        } else if (strpbrk(paths[i], "*?[")) {
            status = add_pattern(out, paths[i], error);
        } else {
            status = base_fail(error, SIFR_FAILED, "%s: no such file or directory%s", paths[i],
                               base_home_hint(paths[i]));
        }
        if (status != SIFR_OK) goto fail;
    }
    if (out->count == 0) {
        status = base_fail(
            error, SIFR_FAILED, "%s%s: no text to read: files found: %zu, all of them empty",
            count ? paths[0] : "data", count > 1 ? " and so on" : "", out->empty_files);
        goto fail;
    }
    return SIFR_OK;
fail:
    data_text_source_close(out);
    return status;
}

sifr_status data_text_source_open(const char *const *paths, size_t count, data_text_source *out,
                                  sifr_error *error) {
    *out = (data_text_source){0};
    return open_paths(paths, count, out, error);
}

sifr_status data_text_source_open_rows(const char *const *paths, size_t count,
                                       data_text_source *out, sifr_error *error) {
    *out = (data_text_source){.rows = true};
    return open_paths(paths, count, out, error);
}

sifr_status data_text_source_list(const char *const *paths, size_t count, data_text_source *out,
                                  sifr_error *error) {
    *out = (data_text_source){.names = true};
    return open_paths(paths, count, out, error);
}

void data_text_source_close(data_text_source *source) {
    for (size_t i = 0; i < source->count; i++) free(source->documents[i].path);
    free(source->documents);
    *source = (data_text_source){0};
}

sifr_status data_text_source_map(const data_text_source *source, size_t position, base_map *map,
                                 sifr_error *error) {
    base_assert(position < source->count);
    const char *path = source->documents[position].path;
    BASE_TRY(base_map_file(path, map, error));
    const uint8_t *nul = map->size ? memchr(map->data, 0, map->size) : NULL;
    if (!nul) return SIFR_OK;
    sifr_status status = binary_file(path, (uint64_t)(nul - map->data), error);
    base_unmap(map);
    return status;
}
