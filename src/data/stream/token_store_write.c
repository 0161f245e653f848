/* The writer of token_store.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/heap.h"
#include "data/stream/token_store_internal.h"

enum { CODE_I32 = 4, CODE_U16 = 8 };

sifr_status data_token_writer_open(data_token_writer *writer, const char *prefix,
                                   int64_t vocab_size, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    memset(writer, 0, sizeof *writer);
    int used = snprintf(path, sizeof path, "%s.bin", prefix);
    if (used < 0 || (size_t)used >= sizeof path) {
        return base_fail(error, SIFR_USAGE, "%.200s…: path too long", prefix);
    }
    if (vocab_size < 1 || vocab_size > INT32_MAX) {
        return base_fail(error, SIFR_USAGE, "%s: a vocabulary of %lld ids cannot be stored", prefix,
                         (long long)vocab_size);
    }
    strcpy(writer->prefix, prefix);
    writer->vocab_size = vocab_size;
    writer->token_bytes = vocab_size < 65500 ? 2 : 4;
    writer->hash = base_hash_begin();
    if (!writer->hash) return base_fail(error, SIFR_NO_MEMORY, "%s: out of memory", path);
    sifr_status status = base_writer_open(&writer->data, path, error);
    if (status != SIFR_OK) data_token_writer_abort(writer);
    return status;
}

sifr_status data_token_writer_append(data_token_writer *writer, const int32_t *ids, size_t count,
                                     sifr_error *error) {
    enum { BLOCK = 4096 };
    uint16_t narrow[BLOCK];
    if (count > (size_t)(INT32_MAX - writer->open_length)) {
        return base_fail(error, SIFR_FAILED,
                         "%s: document %zu has more than %d tokens, which the format cannot hold: "
                         "split the file",
                         writer->prefix, writer->documents, INT32_MAX);
    }
    for (size_t first = 0; first < count; first += BLOCK) {
        size_t part = count - first < BLOCK ? count - first : BLOCK;
        for (size_t i = 0; i < part; i++) {
            int32_t id = ids[first + i];
            if (id < 0 || id >= writer->vocab_size) {
                return base_fail(error, SIFR_FAILED,
                                 "%s: token id %d is outside of the vocabulary of %lld",
                                 writer->prefix, id, (long long)writer->vocab_size);
            }
            narrow[i] = (uint16_t)id;
        }
        const void *from = writer->token_bytes == 2 ? (const void *)narrow : ids + first;
        size_t bytes = part * (size_t)writer->token_bytes;
        base_hash_add(writer->hash, from, bytes);
        BASE_TRY(base_writer_write(&writer->data, from, bytes, error));
    }
    writer->open_length += (int64_t)count;
    return SIFR_OK;
}

sifr_status data_token_writer_end_document(data_token_writer *writer, sifr_error *error) {
    BASE_TRY(base_grow(&writer->lengths, &writer->capacity, writer->documents + 1,
                       sizeof *writer->lengths, error));
    writer->lengths[writer->documents++] = (int32_t)writer->open_length;
    writer->open_length = 0;
    return SIFR_OK;
}

static sifr_status write_number(base_writer *file, uint64_t value, int bytes, sifr_error *error) {
    uint8_t out[8];
    for (int i = 0; i < bytes; i++) out[i] = (uint8_t)(value >> 8 * i);
    return base_writer_write(file, out, (size_t)bytes, error);
}

static sifr_status write_hash(data_token_writer *writer, base_writer *file, sifr_error *error) {
    uint64_t hash = base_hash_end(writer->hash);
    writer->hash = NULL;
    BASE_TRY(base_writer_write(file, token_store_hash_mark, sizeof token_store_hash_mark, error));
    return write_number(file, hash, 8, error);
}

static sifr_status write_index(const data_token_writer *writer, base_writer *file,
                               sifr_error *error) {
    size_t documents = writer->documents;
    uint64_t offset = 0;
    BASE_TRY(base_writer_write(file, "MMIDIDX\0", 9, error));
    BASE_TRY(write_number(file, 1, 8, error));
    BASE_TRY(write_number(file, writer->token_bytes == 2 ? CODE_U16 : CODE_I32, 1, error));
    BASE_TRY(write_number(file, documents, 8, error));
    BASE_TRY(write_number(file, documents + 1, 8, error));
    for (size_t i = 0; i < documents; i++) {
        BASE_TRY(write_number(file, (uint32_t)writer->lengths[i], 4, error));
    }
    for (size_t i = 0; i < documents; i++) {
        BASE_TRY(write_number(file, offset, 8, error));
        offset += (uint64_t)writer->lengths[i] * (uint64_t)writer->token_bytes;
    }
    for (size_t i = 0; i <= documents; i++) BASE_TRY(write_number(file, i, 8, error));
    return SIFR_OK;
}

sifr_status data_token_writer_commit(data_token_writer *writer, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    base_writer index = {0};
    sifr_status status = SIFR_OK;
    if (writer->open_length) {
        BASE_TRY_GOTO(status, data_token_writer_end_document(writer, error), done);
    }
    snprintf(path, sizeof path, "%.4090s.idx", writer->prefix);
    BASE_TRY_GOTO(status, base_writer_open(&index, path, error), done);
    BASE_TRY_GOTO(status, write_index(writer, &index, error), done);
    BASE_TRY_GOTO(status, write_hash(writer, &index, error), done);
    /* An old index never stands beside new data: between the two renames there is no store. */
    if (unlink(path) != 0 && errno != ENOENT) {
        status = base_fail_errno(error, errno, "%s: cannot replace", path);
        goto done;
    }
    BASE_TRY_GOTO(status, base_writer_commit(&writer->data, error), done);
    status = base_writer_commit(&index, error);
done:
    base_writer_abort(&index);
    data_token_writer_abort(writer);
    return status;
}

void data_token_writer_abort(data_token_writer *writer) {
    base_writer_abort(&writer->data);
    (void)base_hash_end(writer->hash);
    free(writer->lengths);
    writer->hash = NULL;
    writer->lengths = NULL;
}
