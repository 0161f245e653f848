#include "data/stream/data_stream.h"

#include <fnmatch.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/heap.h"
#include "data/stream/data_text.h"
#include "data/stream/token_store.h"

/* A token store as a part of the stream. */
typedef struct data_part {
    data_token_store store;
    int64_t tokens;  /* with separators */
    int64_t *starts; /* start of each document in the part, and the end; NULL: no separators are
                        inserted */
    bool open;
} data_part;

struct data_stream {
    data_part *parts;
    size_t count, part_capacity, start_capacity;
    int32_t separator; /* -1: none */
    int64_t *starts;   /* start of each part in the stream, and the end */
    int64_t documents;
    uint64_t hash;
};

/* Whether the stream needs a separator after this document. */
static bool lacks_separator(const data_stream *stream, const data_token_store *store, int64_t first,
                            int64_t count) {
    int32_t last;
    bool marked = store->document_starts != NULL; /* llm.c's files begin and end anywhere */
    if (count == 0 || stream->separator < 0 || !marked) return false;
    data_token_store_read(store, first + count - 1, 1, &last);
    return last != stream->separator;
}

static sifr_status place_documents(const data_stream *stream, data_part *part, sifr_error *error) {
    const data_token_store *store = &part->store;
    int64_t first, count, missing = 0;
    for (int64_t d = 0; d < store->documents; d++) {
        data_token_store_document(store, d, &first, &count);
        missing += lacks_separator(stream, store, first, count);
    }
    part->tokens = store->tokens + missing;
    if (missing == 0) return SIFR_OK;
    BASE_TRY(base_alloc((size_t)store->documents + 1, sizeof *part->starts, &part->starts, error));
    for (int64_t d = 0, at = 0; d < store->documents; d++) {
        data_token_store_document(store, d, &first, &count);
        part->starts[d] = at;
        at += count + lacks_separator(stream, store, first, count);
    }
    part->starts[store->documents] = part->tokens;
    return SIFR_OK;
}

/* Hashes the stream: its tokens, the ends of documents, and the separator. */
static uint64_t hash_part(const data_stream *stream, const data_part *part, uint64_t seed) {
    uint64_t hash = base_hash_seeded(part->store.ids,
                                     (size_t)(part->store.tokens * part->store.token_bytes), seed);
    int64_t facts[3] = {part->store.token_bytes, part->store.documents, stream->separator};
    hash = base_hash_seeded(facts, sizeof facts, hash);
    if (part->starts) {
        size_t bytes = (size_t)(part->store.documents + 1) * sizeof *part->starts;
        hash = base_hash_seeded(part->starts, bytes, hash);
    }
    return hash;
}

/* `checked`: its ids are known to be in the vocabulary. */
static sifr_status add_store(data_stream *stream, const char *prefix, int64_t vocab_size,
                             bool checked, sifr_error *error) {
    size_t count = stream->count;
    BASE_TRY(
        base_grow(&stream->parts, &stream->part_capacity, count + 1, sizeof *stream->parts, error));
    BASE_TRY(base_grow(&stream->starts, &stream->start_capacity, count + 2, sizeof *stream->starts,
                       error));
    data_part *part = &stream->parts[count];
    *part = (data_part){0};
    BASE_TRY(data_token_store_open(prefix, &part->store, error));
    part->open = true;
    stream->count++;
    if (!checked) BASE_TRY(data_token_store_check(&part->store, vocab_size, prefix, error));
    BASE_TRY(place_documents(stream, part, error));
    stream->starts[stream->count] = stream->starts[stream->count - 1] + part->tokens;
    stream->documents += part->store.documents;
    stream->hash = hash_part(stream, part, stream->hash);
    return SIFR_OK;
}

/* Whether all that a pattern names is of token stores. */
static bool names_stores(const glob_t *found) {
    char prefix[BASE_PATH_LENGTH];
    for (size_t i = 0; i < found->gl_pathc; i++)
        if (!data_token_store_prefix(found->gl_pathv[i], prefix)) return false;
    return found->gl_pathc > 0;
}

/* Whether the pattern names the .bin of this .idx too. */
static bool is_second(const char *pattern, const char *path, const char *prefix) {
    char data[BASE_PATH_LENGTH + 8];
    size_t length = strlen(path);
    snprintf(data, sizeof data, "%s.bin", prefix);
    return length > 4 && strcmp(path + length - 4, ".idx") == 0 &&
           fnmatch(pattern, data, FNM_PATHNAME | FNM_PERIOD) == 0;
}

/* A store, or those that a pattern names, in the order of their names; a pair of files counts once.
 * *stores is false where the path is no store: then it is text. */
static sifr_status add_stores(data_stream *stream, const char *path, int64_t vocab_size,
                              bool *stores, sifr_error *error) {
    char prefix[BASE_PATH_LENGTH];
    glob_t found;
    *stores = data_token_store_prefix(path, prefix);
    if (*stores) return add_store(stream, prefix, vocab_size, false, error);
    if (access(path, F_OK) == 0 || !strpbrk(path, "*?[")) return SIFR_OK;
    if (glob(path, GLOB_ERR, NULL, &found) != 0) return SIFR_OK; /* which text reports */
    *stores = names_stores(&found);
    sifr_status status = SIFR_OK;
    for (size_t i = 0; *stores && i < found.gl_pathc && status == SIFR_OK; i++) {
        (void)data_token_store_prefix(found.gl_pathv[i], prefix);
        if (!is_second(path, found.gl_pathv[i], prefix))
            status = add_store(stream, prefix, vocab_size, false, error);
    }
    globfree(&found);
    return status;
}

sifr_status data_stream_open(const data_set_options *options, data_stream **out,
                             sifr_error *error) {
    data_stream *stream;
    char prefix[BASE_PATH_LENGTH];
    const char **texts = NULL;
    size_t text_count = 0;
    data_text_source source = {0};
    sifr_status status;
    BASE_TRY(base_alloc(1, sizeof *stream, &stream, error));
    stream->separator = -1;
    if (options->separator >= 0 && options->separator < options->vocab_size)
        stream->separator = (int32_t)options->separator;
    BASE_TRY_GOTO(
        status,
        base_grow(&stream->starts, &stream->start_capacity, 1, sizeof *stream->starts, error),
        fail);
    stream->starts[0] = 0;
    BASE_TRY_GOTO(status, base_alloc(options->count + 1, sizeof *texts, &texts, error), fail);
    for (size_t i = 0; i < options->count; i++) {
        bool stores;
        BASE_TRY_GOTO(status,
                      add_stores(stream, options->paths[i], options->vocab_size, &stores, error),
                      fail);
        if (!stores) texts[text_count++] = options->paths[i];
    }
    if (text_count) {
        BASE_TRY_GOTO(status, data_text_source_open(texts, text_count, &source, error), fail);
        BASE_TRY_GOTO(status, data_text_source_check(&source, error), fail);
        bool checked;
        BASE_TRY_GOTO(status, data_set_from_text(&source, options, prefix, &checked, error), fail);
        BASE_TRY_GOTO(status, add_store(stream, prefix, options->vocab_size, checked, error), fail);
    }
    *out = stream;
    stream = NULL;
fail:
    data_stream_close(stream);
    data_text_source_close(&source);
    free(texts);
    return status;
}

void data_stream_close(data_stream *stream) {
    if (!stream) return;
    for (size_t i = 0; i < stream->count; i++) {
        if (stream->parts[i].open) data_token_store_close(&stream->parts[i].store);
        free(stream->parts[i].starts);
    }
    free(stream->parts);
    free(stream->starts);
    free(stream);
}

int64_t data_stream_tokens(const data_stream *stream) {
    return stream->starts[stream->count];
}

int64_t data_stream_documents(const data_stream *stream) {
    return stream->documents;
}

uint64_t data_stream_hash(const data_stream *stream) {
    return stream->hash;
}

/* The index of the last entry of the sorted list starts[0…count - 1] that is at most `value`. */
static int64_t find_start(const int64_t *starts, int64_t count, int64_t value) {
    base_assert(count > 0 && starts[0] <= value);
    int64_t low = 0, high = count - 1;
    while (low < high) {
        int64_t middle = high - (high - low) / 2;
        if (starts[middle] <= value)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void read_part(const data_stream *stream, const data_part *part, int64_t at, int64_t count,
                      int32_t *out) {
    if (!part->starts) {
        data_token_store_read(&part->store, at, count, out);
        return;
    }
    int64_t d = find_start(part->starts, part->store.documents, at), first, length;
    for (; count > 0; d++) {
        data_token_store_document(&part->store, d, &first, &length);
        int64_t skip = at - part->starts[d], end = part->starts[d + 1] - part->starts[d];
        base_assert(skip >= 0 && skip <= end);
        int64_t stored = base_min_i64(length - skip, count);
        if (stored > 0) data_token_store_read(&part->store, first + skip, stored, out);
        int64_t taken = base_min_i64(end - skip, count);
        if (taken > stored) out[taken - 1] = stream->separator;
        out += taken, at += taken, count -= taken;
    }
}

void data_stream_read(const data_stream *stream, int64_t at, int64_t count, int32_t *out) {
    base_assert(at >= 0 && at + count <= stream->starts[stream->count]);
    int64_t p = find_start(stream->starts, (int64_t)stream->count, at);
    for (; count > 0; p++) {
        int64_t taken = base_min_i64(stream->starts[p + 1] - at, count);
        if (taken > 0) read_part(stream, &stream->parts[p], at - stream->starts[p], taken, out);
        out += taken, at += taken, count -= taken;
    }
}
