#include "data/stream/token_store.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/checked.h"
#include "data/stream/token_store_internal.h"

/* Whether a file begins as llm.c's do. */
static bool is_llmc(const char *path) {
    uint8_t begin[4];
    uint64_t size;
    int file;
    if (!base_is_file(path) || base_open_read(path, &file, &size, NULL) != SIFR_OK) return false;
    ssize_t got = read(file, begin, sizeof begin);
    close(file);
    return got == (ssize_t)sizeof begin && token_store_is_llmc(begin, sizeof begin);
}

bool data_token_store_prefix(const char *path, char prefix[BASE_PATH_LENGTH]) {
    char file[BASE_PATH_LENGTH + 8];
    size_t length = strlen(path);
    if (length >= BASE_PATH_LENGTH) return false;
    bool suffix =
        length > 4 && (!strcmp(path + length - 4, ".idx") || !strcmp(path + length - 4, ".bin"));
    strcpy(prefix, path);
    if (suffix) prefix[length - 4] = 0;
    snprintf(file, sizeof file, "%s.idx", prefix);
    bool index = base_is_file(file);
    snprintf(file, sizeof file, "%s.bin", prefix);
    if (index && base_is_file(file)) return true;
    strcpy(prefix, path);
    return is_llmc(path);
}

/* llm.c's file, which has no index. */
static sifr_status open_llmc(const char *path, data_token_store *out, sifr_error *error) {
    base_map data;
    BASE_TRY(base_map_file(path, &data, error));
    sifr_status status = data_token_store_parse_llmc(data.data, data.size, path, out, error);
    if (status == SIFR_OK)
        out->data = data, out->owned = true;
    else
        base_unmap(&data);
    return status;
}

sifr_status data_token_store_open(const char *prefix, data_token_store *out, sifr_error *error) {
    char path[BASE_PATH_LENGTH + 8];
    base_map index, data = {0};
    *out = (data_token_store){0};
    snprintf(path, sizeof path, "%s.idx", prefix);
    if (!base_is_file(path) && is_llmc(prefix)) return open_llmc(prefix, out, error);
    BASE_TRY(base_map_file(path, &index, error));
    snprintf(path, sizeof path, "%s.bin", prefix);
    sifr_status status = base_map_file(path, &data, error);
    if (status == SIFR_OK) {
        status = data_token_store_parse(index.data, index.size, data.data, data.size, prefix, out,
                                        error);
    }
    if (status != SIFR_OK) {
        base_unmap(&index);
        base_unmap(&data);
        return status;
    }
    out->index = index;
    out->data = data;
    out->owned = true;
    return SIFR_OK;
}

void data_token_store_close(data_token_store *store) {
    if (store->owned) {
        base_unmap(&store->data);
        base_unmap(&store->index);
    }
    *store = (data_token_store){0};
}

static int64_t sequence_start(const data_token_store *store, int64_t sequence) {
    base_assert(sequence >= 0 && sequence <= store->sequences);
    if (sequence == store->sequences) return store->tokens;
    int64_t offset = (int64_t)token_store_u64(store->offsets + 8 * sequence);
    return store->offsets_in_tokens ? offset : offset / store->token_bytes;
}

void data_token_store_document(const data_token_store *store, int64_t document, int64_t *first,
                               int64_t *count) {
    base_assert(document >= 0 && document < store->documents);
    if (!store->document_starts) {
        *first = 0, *count = store->tokens;
        return;
    }
    int64_t begin = (int64_t)token_store_u64(store->document_starts + 8 * document);
    int64_t end = (int64_t)token_store_u64(store->document_starts + 8 * document + 8);
    *first = sequence_start(store, begin);
    *count = sequence_start(store, end) - *first;
    base_assert(*count >= 0);
}

void data_token_store_read(const data_token_store *store, int64_t first, int64_t count,
                           int32_t *out) {
    base_assert(first >= 0 && count >= 0 && first + count <= store->tokens);
    const uint8_t *at = store->ids + first * store->token_bytes;
    switch (store->token_bytes) {
    case 1:
        for (int64_t i = 0; i < count; i++) out[i] = at[i];
        break;
    case 2:
        for (int64_t i = 0; i < count; i++) {
            uint16_t id;
            memcpy(&id, at + 2 * i, sizeof id);
            out[i] = id;
            if (store->token_signed && id > INT16_MAX) out[i] = -1;
        }
        break;
    case 4:
        for (int64_t i = 0; i < count; i++) {
            int32_t id;
            memcpy(&id, at + 4 * i, sizeof id);
            out[i] = id < 0 ? -1 : id;
        }
        break;
    default:
        for (int64_t i = 0; i < count; i++) {
            int64_t id;
            memcpy(&id, at + 8 * i, sizeof id);
            out[i] = id < 0 || id > INT32_MAX ? -1 : (int32_t)id;
        }
        break;
    }
}

static sifr_status check_hash(const data_token_store *store, const char *name, sifr_error *error) {
    size_t size = (size_t)(store->tokens * store->token_bytes);
    if (!store->has_hash || base_hash(store->ids, size) == store->hash) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s.bin: damaged: its checksum is not the one that %s.idx has from when they "
                     "were written; copy them again, or make them again with sifr tokenize",
                     name, name);
}

sifr_status data_token_store_check(const data_token_store *store, int64_t vocab_size,
                                   const char *name, sifr_error *error) {
    enum { BLOCK = 4096 };
    int32_t ids[BLOCK];
    BASE_TRY(check_hash(store, name, error));
    for (int64_t first = 0; first < store->tokens; first += BLOCK) {
        int64_t count = base_min_i64(BLOCK, store->tokens - first);
        data_token_store_read(store, first, count, ids);
        /* As unsigned numbers, what did not fit (-1) is the greatest of all. */
        uint32_t greatest = 0;
        for (int64_t i = 0; i < count; i++) {
            greatest = (uint32_t)ids[i] > greatest ? (uint32_t)ids[i] : greatest;
        }
        if (greatest < vocab_size) continue;
        int64_t at = 0;
        while ((uint32_t)ids[at] < vocab_size) at++;
        char id[32] = "that does not fit in 31 bits";
        if (ids[at] >= 0) snprintf(id, sizeof id, "%d", ids[at]);
        return base_fail(error, SIFR_FAILED,
                         "%s%s: token %lld is id %s, outside the vocabulary of %lld; was it made "
                         "with another tokenizer?",
                         name, store->document_starts ? ".bin" : "", (long long)(first + at), id,
                         (long long)vocab_size);
    }
    return SIFR_OK;
}
