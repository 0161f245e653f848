#include "formats/token_store.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"

enum { HEADER_BYTES = 34 };

static const uint8_t magic[9] = "MMIDIDX\0";

static uint64_t load_u64(const uint8_t *at) {
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) value = value << 8 | at[i];
    return value;
}

static int32_t load_i32(const uint8_t *at) {
    return (int32_t)((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
                     (uint32_t)at[3] << 24);
}

bool formats_token_store_prefix(const char *path, char prefix[BASE_PATH_LENGTH]) {
    char file[BASE_PATH_LENGTH + 8];
    size_t length = strlen(path);
    if (length >= BASE_PATH_LENGTH) return false;
    bool suffix =
        length > 4 && (!strcmp(path + length - 4, ".idx") || !strcmp(path + length - 4, ".bin"));
    strcpy(prefix, path);
    if (suffix) prefix[length - 4] = 0;
    snprintf(file, sizeof file, "%s.idx", prefix);
    if (!base_is_file(file)) return false;
    snprintf(file, sizeof file, "%s.bin", prefix);
    return base_is_file(file);
}

static sifr_status check_header(const uint8_t *index, size_t size, const char *name,
                                sifr_error *error) {
    if (size < HEADER_BYTES || memcmp(index, magic, sizeof magic) != 0) {
        return base_fail(error, SIFR_FAILED,
                         "%s.idx: not the index of a token store: it does not begin with MMIDIDX",
                         name);
    }
    uint64_t version = load_u64(index + 9);
    if (version != 1) {
        return base_fail(error, SIFR_FAILED, "%s.idx: version %llu of the format, 1 is known", name,
                         (unsigned long long)version);
    }
    return SIFR_OK;
}

/* Megatron's codes; floating types and i8 hold no token ids. */
static bool read_type(uint8_t code, formats_token_store *out) {
    static const int8_t bytes[] = {0, 1, 0, 2, 4, 8, 0, 0, 2};
    if (code >= sizeof bytes || !bytes[code]) return false;
    out->token_bytes = bytes[code];
    out->token_signed = code != 1 && code != 8;
    return true;
}

/* Every row lies directly behind the one before, and the last ends with the file. */
static sifr_status check_rows(const formats_token_store *store, const uint8_t *lengths,
                              size_t data_size, const char *name, sifr_error *error) {
    uint64_t at = 0;
    for (int64_t i = 0; i < store->sequences; i++) {
        int32_t length = load_i32(lengths + 4 * i);
        uint64_t offset = load_u64(store->offsets + 8 * i);
        uint64_t bytes = (uint64_t)(length < 0 ? 0 : length) * (uint64_t)store->token_bytes;
        if (length < 0 || offset != at || bytes > data_size - at) {
            return base_fail(error, SIFR_FAILED,
                             "%s.idx: sequence %lld (length %d at byte %llu) does not fit: byte "
                             "%llu of %zu is next; index and data do not belong together, or one "
                             "is damaged",
                             name, (long long)i, length, (unsigned long long)offset,
                             (unsigned long long)at, data_size);
        }
        at += bytes;
    }
    if (at != data_size) {
        return base_fail(error, SIFR_FAILED,
                         "%s.bin: has %zu bytes, its index accounts for %llu: they do not belong "
                         "together, or one is damaged",
                         name, data_size, (unsigned long long)at);
    }
    return SIFR_OK;
}

static sifr_status check_documents(const formats_token_store *store, const char *name,
                                   sifr_error *error) {
    int64_t last = 0;
    for (int64_t i = 0; i <= store->documents; i++) {
        int64_t start = (int64_t)load_u64(store->document_starts + 8 * i);
        bool good = i == 0 ? start == 0 : start >= last && start <= store->sequences;
        if (i == store->documents) good = good && start == store->sequences;
        if (!good) {
            return base_fail(error, SIFR_FAILED,
                             "%s.idx: document entry %lld is %lld: entries must rise from 0 to "
                             "the %lld sequences",
                             name, (long long)i, (long long)start, (long long)store->sequences);
        }
        last = start;
    }
    return SIFR_OK;
}

sifr_status formats_token_store_parse(const void *index, size_t index_size, const void *data,
                                      size_t data_size, const char *name, formats_token_store *out,
                                      sifr_error *error) {
    const uint8_t *bytes = index;
    *out = (formats_token_store){0};
    BASE_TRY(check_header(bytes, index_size, name, error));
    if (!read_type(bytes[17], out)) {
        return base_fail(error, SIFR_FAILED,
                         "%s.idx: type code %d holds no token ids: 1 (u8), 3 (i16), 4 (i32), 5 "
                         "(i64) and 8 (u16) do",
                         name, bytes[17]);
    }
    /* Both counts are bounded by the size of the file before they are multiplied. */
    uint64_t sequences = load_u64(bytes + 18), entries = load_u64(bytes + 26);
    uint64_t rest = index_size - HEADER_BYTES;
    bool fits = sequences <= rest / 12 && entries >= 1 && entries <= (rest - 12 * sequences) / 8;
    uint64_t used = fits ? 12 * sequences + 8 * entries : 0;
    if (!fits || (rest != used && rest != used + sequences)) {
        return base_fail(error, SIFR_FAILED,
                         "%s.idx: %zu bytes do not hold %llu sequences and %llu document entries: "
                         "damaged or cut short",
                         name, index_size, (unsigned long long)sequences,
                         (unsigned long long)entries);
    }
    if (data_size % (size_t)out->token_bytes) {
        return base_fail(error, SIFR_FAILED,
                         "%s.bin: %zu bytes are not a whole number of tokens of %d bytes", name,
                         data_size, out->token_bytes);
    }
    out->sequences = (int64_t)sequences;
    out->documents = (int64_t)entries - 1;
    out->tokens = (int64_t)(data_size / (size_t)out->token_bytes);
    out->offsets = bytes + HEADER_BYTES + 4 * sequences;
    out->document_starts = out->offsets + 8 * sequences;
    out->data = (base_map){data, data_size};
    sifr_status status = check_rows(out, bytes + HEADER_BYTES, data_size, name, error);
    if (status == SIFR_OK) status = check_documents(out, name, error);
    if (status != SIFR_OK) *out = (formats_token_store){0};
    return status;
}

sifr_status formats_token_store_open(const char *prefix, formats_token_store *out,
                                     sifr_error *error) {
    char path[BASE_PATH_LENGTH + 8];
    base_map index, data = {0};
    *out = (formats_token_store){0};
    snprintf(path, sizeof path, "%s.idx", prefix);
    BASE_TRY(base_map_file(path, &index, error));
    snprintf(path, sizeof path, "%s.bin", prefix);
    sifr_status status = base_map_file(path, &data, error);
    if (status == SIFR_OK) {
        status = formats_token_store_parse(index.data, index.size, data.data, data.size, prefix,
                                           out, error);
    }
    if (status != SIFR_OK) {
        base_unmap(&index);
        base_unmap(&data);
        return status;
    }
    out->index = index;
    out->data = data;
    return SIFR_OK;
}

void formats_token_store_close(formats_token_store *store) {
    /* A parsed store has no index of its own: then the data is the caller's as well. */
    if (store->index.data) {
        base_unmap(&store->data);
        base_unmap(&store->index);
    }
    *store = (formats_token_store){0};
}

static int64_t sequence_start(const formats_token_store *store, int64_t sequence) {
    if (sequence == store->sequences) return store->tokens;
    return (int64_t)load_u64(store->offsets + 8 * sequence) / store->token_bytes;
}

void formats_token_store_document(const formats_token_store *store, int64_t document,
                                  int64_t *first, int64_t *count) {
    int64_t begin = (int64_t)load_u64(store->document_starts + 8 * document);
    int64_t end = (int64_t)load_u64(store->document_starts + 8 * document + 8);
    *first = sequence_start(store, begin);
    *count = sequence_start(store, end) - *first;
}

void formats_token_store_read(const formats_token_store *store, int64_t first, int64_t count,
                              int32_t *out) {
    const uint8_t *at = store->data.data + first * store->token_bytes;
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

sifr_status formats_token_store_check(const formats_token_store *store, int64_t vocab_size,
                                      const char *name, sifr_error *error) {
    enum { BLOCK = 4096 };
    int32_t ids[BLOCK];
    for (int64_t first = 0; first < store->tokens; first += BLOCK) {
        int64_t count = base_min_i64(BLOCK, store->tokens - first);
        formats_token_store_read(store, first, count, ids);
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
                         "%s.bin: token %lld is id %s, outside the vocabulary of %lld; was it made "
                         "with another tokenizer?",
                         name, (long long)(first + at), id, (long long)vocab_size);
    }
    return SIFR_OK;
}
