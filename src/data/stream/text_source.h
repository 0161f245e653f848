/* Text to train on: --data PATH… as a list of documents, one file each. */
#ifndef DATA_TEXT_SOURCE_H
#define DATA_TEXT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "base/file.h"

typedef struct data_document {
    char *path;
    uint64_t size; /* bytes when listed; at least 1 */
} data_document;

typedef struct data_text_source {
    data_document *documents; /* in the order of the paths given; sorted within each */
    size_t count, capacity;
    uint64_t bytes;     /* of all documents */
    size_t empty_files; /* left out */
    size_t links;       /* links to directories inside a directory: not followed */
    bool rows;          /* opened as files of rows */
    bool names;         /* listed by their names alone */
} data_text_source;

/* Each path is a file, a directory (searched through all levels, names sorted bytewise, names that
 * begin with "." left out) or, where no such file is there, a pattern as in glob(7). SIFR_USAGE
 * when a path or pattern names nothing or no text is found; SIFR_FAILED for what cannot be read, is
 * no regular file or does not begin like text; SIFR_USAGE for Parquet and packed files. */
sifr_status data_text_source_open(const char *const *paths, size_t count, data_text_source *out,
                                  sifr_error *error) SIFR_MUST_CHECK;
/* The same for files of rows (data/records/records.h), which may be packed. */
sifr_status data_text_source_open_rows(const char *const *paths, size_t count,
                                       data_text_source *out, sifr_error *error) SIFR_MUST_CHECK;
/* The files that the paths name, as those two find them, but none of them is looked into: sizes are
 * 1, and empty files are listed too. */
sifr_status data_text_source_list(const char *const *paths, size_t count, data_text_source *out,
                                  sifr_error *error) SIFR_MUST_CHECK;
/* The first document that holds records (JSON, CSV) by its name: what it is, and *path; or NULL. */
const char *data_text_source_records(const data_text_source *source, const char **path);
/* SIFR_USAGE, naming it, where there is one: its quotes and field names would be trained on. */
sifr_status data_text_source_check(const data_text_source *source,
                                   sifr_error *error) SIFR_MUST_CHECK;

void data_text_source_close(data_text_source *source); /* harmless on a zeroed one */

/* Maps document `position` for reading; the caller unmaps. SIFR_FAILED, naming the file and the
 * place, when it holds a NUL byte (no text does). Safe from several threads. */
sifr_status data_text_source_map(const data_text_source *source, size_t position, base_map *map,
                                 sifr_error *error) SIFR_MUST_CHECK;

#endif
