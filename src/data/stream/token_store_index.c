/* The two indexes that Megatron has had, checked in full: whatever is read later by offset or
 * document lies inside of the data. */
#include <string.h>

#include "data/stream/token_store_internal.h"

enum { HEADER_BYTES = 34, LEGACY_HEADER_BYTES = 56 };

static const uint8_t magic[9] = "MMIDIDX\0", legacy_magic[8] = "TNTIDX\0";

static int32_t load_i32(const uint8_t *at) {
    return (int32_t)((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
                     (uint32_t)at[3] << 24);
}

static sifr_status check_version(uint64_t version, const char *name, sifr_error *error) {
    if (version == 1) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s.idx: version %llu of the format, 1 is known", name,
                     (unsigned long long)version);
}

static sifr_status check_header(const uint8_t *index, size_t size, const char *name,
                                sifr_error *error) {
    if (size < HEADER_BYTES || memcmp(index, magic, sizeof magic) != 0) {
        return base_fail(error, SIFR_FAILED,
                         "%s.idx: not the index of a token store: it does not begin with MMIDIDX "
                         "or TNTIDX",
                         name);
    }
    return check_version(token_store_u64(index + 9), name, error);
}

static sifr_status refuse_type(uint64_t code, const char *name, sifr_error *error) {
    return base_fail(error, SIFR_FAILED,
                     "%s.idx: type code %llu holds no token ids: 1 (u8), 3 (i16), 4 (i32), 5 (i64) "
                     "and 8 (u16) do",
                     name, (unsigned long long)code);
}

/* Megatron's codes; floating types and i8 hold no token ids. */
static bool read_type(uint64_t code, data_token_store *out) {
    static const int8_t bytes[] = {0, 1, 0, 2, 4, 8, 0, 0, 2};
    if (code >= sizeof bytes || !bytes[code]) return false;
    out->token_bytes = bytes[code];
    out->token_signed = code != 1 && code != 8;
    return true;
}

/* Every row lies directly behind the one before, and the last ends with the file. */
static sifr_status check_rows(const data_token_store *store, const uint8_t *lengths,
                              size_t data_size, const char *name, sifr_error *error) {
    uint64_t at = 0;
    for (int64_t i = 0; i < store->sequences; i++) {
        int32_t length = load_i32(lengths + 4 * i);
        uint64_t offset = token_store_u64(store->offsets + 8 * i);
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

static sifr_status check_documents(const data_token_store *store, const char *name,
                                   sifr_error *error) {
    int64_t last = 0;
    for (int64_t i = 0; i <= store->documents; i++) {
        int64_t start = (int64_t)token_store_u64(store->document_starts + 8 * i);
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

/* The .bin is whole tokens. */
static sifr_status check_data(data_token_store *store, size_t data_size, const char *name,
                              sifr_error *error) {
    store->tokens = (int64_t)(data_size / (size_t)store->token_bytes);
    if (data_size % (size_t)store->token_bytes == 0) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s.bin: %zu bytes are not a whole number of tokens of %d bytes", name,
                     data_size, store->token_bytes);
}

/* Whether it is all that is left; else there may be modes. */
static bool read_hash(const uint8_t *bytes, uint64_t size, data_token_store *out) {
    out->has_hash = size == TOKEN_STORE_HASH_BYTES &&
                    memcmp(bytes, token_store_hash_mark, sizeof token_store_hash_mark) == 0;
    if (out->has_hash) out->hash = token_store_u64(bytes + sizeof token_store_hash_mark);
    return out->has_hash;
}

static sifr_status parse_mapped(const uint8_t *bytes, size_t index_size, size_t data_size,
                                const char *name, data_token_store *out, sifr_error *error) {
    BASE_TRY(check_header(bytes, index_size, name, error));
    if (!read_type(bytes[17], out)) return refuse_type(bytes[17], name, error);
    /* Both counts are bounded by the size of the file before they are multiplied. */
    uint64_t sequences = token_store_u64(bytes + 18), entries = token_store_u64(bytes + 26);
    uint64_t rest = index_size - HEADER_BYTES;
    bool fits = sequences <= rest / 12 && entries >= 1 && entries <= (rest - 12 * sequences) / 8;
    uint64_t used = fits ? 12 * sequences + 8 * entries : 0;
    bool hashed = fits && read_hash(bytes + HEADER_BYTES + used, rest - used, out);
    if (!fits || (!hashed && rest != used && rest != used + sequences)) {
        return base_fail(error, SIFR_FAILED,
                         "%s.idx: %zu bytes do not hold %llu sequences and %llu document entries: "
                         "damaged or cut short",
                         name, index_size, (unsigned long long)sequences,
                         (unsigned long long)entries);
    }
    BASE_TRY(check_data(out, data_size, name, error));
    out->sequences = (int64_t)sequences;
    out->documents = (int64_t)entries - 1;
    out->offsets = bytes + HEADER_BYTES + 4 * sequences;
    out->document_starts = out->offsets + 8 * sequences;
    BASE_TRY(check_rows(out, bytes + HEADER_BYTES, data_size, name, error));
    return check_documents(out, name, error);
}

/* --- the older index --- */

/* Items have one dimension each, stand behind one another, and the last ends with the file. */
static sifr_status check_items(const data_token_store *store, const uint8_t *dimensions,
                               const uint8_t *sizes, const char *name, sifr_error *error) {
    uint64_t tokens = (uint64_t)store->tokens, at = 0;
    for (int64_t i = 0; i <= store->sequences; i++) {
        uint64_t offset = token_store_u64(store->offsets + 8 * i);
        if (token_store_u64(dimensions + 8 * i) != (uint64_t)i)
            return base_fail(error, SIFR_FAILED,
                             "%s.idx: item %lld has no one dimension, as rows of tokens have", name,
                             (long long)i);
        if (offset != at)
            return base_fail(
                error, SIFR_FAILED,
                "%s.idx: item %lld begins at token %llu, but token %llu is next: index "
                "and data do not belong together, or one is damaged",
                name, (long long)i, (unsigned long long)offset, (unsigned long long)at);
        if (i == store->sequences) break;
        uint64_t count = token_store_u64(sizes + 8 * i);
        if (count > tokens - at)
            return base_fail(error, SIFR_FAILED,
                             "%s.idx: item %lld has %llu tokens, but the .bin has %llu more: they "
                             "do not belong together, or one is damaged",
                             name, (long long)i, (unsigned long long)count,
                             (unsigned long long)(tokens - at));
        at += count;
    }
    if (at == tokens) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s.bin: has %llu tokens, its index accounts for %llu: they do not belong "
                     "together, or one is damaged",
                     name, (unsigned long long)tokens, (unsigned long long)at);
}

static sifr_status parse_legacy(const uint8_t *bytes, size_t index_size, size_t data_size,
                                const char *name, data_token_store *out, sifr_error *error) {
    if (index_size < LEGACY_HEADER_BYTES)
        return base_fail(error, SIFR_FAILED, "%s.idx: %zu bytes are no whole header: cut short",
                         name, index_size);
    BASE_TRY(check_version(token_store_u64(bytes + 8), name, error));
    uint64_t code = token_store_u64(bytes + 16), size = token_store_u64(bytes + 24);
    if (!read_type(code, out)) return refuse_type(code, name, error);
    if (size != (uint64_t)out->token_bytes)
        return base_fail(error, SIFR_FAILED, "%s.idx: tokens of %llu bytes, but of type code %llu",
                         name, (unsigned long long)size, (unsigned long long)code);
    /* Each count is bounded by the size of the file before they are added up. */
    uint64_t items = token_store_u64(bytes + 32), sizes = token_store_u64(bytes + 40);
    uint64_t entries = token_store_u64(bytes + 48), rest = index_size - LEGACY_HEADER_BYTES;
    bool fits = rest % 8 == 0 && items <= rest && sizes <= rest && entries >= 1 && entries <= rest;
    if (!fits || 2 * (items + 1) + sizes + entries != rest / 8)
        return base_fail(error, SIFR_FAILED,
                         "%s.idx: %zu bytes do not hold %llu items and %llu document entries: "
                         "damaged, cut short, or of fairseq, whose stores are not read",
                         name, index_size, (unsigned long long)items, (unsigned long long)entries);
    if (sizes != items)
        return base_fail(error, SIFR_FAILED,
                         "%s.idx: %llu items with %llu dimensions; rows of tokens have one each",
                         name, (unsigned long long)items, (unsigned long long)sizes);
    BASE_TRY(check_data(out, data_size, name, error));
    const uint8_t *dimensions = bytes + LEGACY_HEADER_BYTES;
    out->sequences = (int64_t)items;
    out->documents = (int64_t)entries - 1;
    out->offsets = dimensions + 8 * (items + 1);
    out->offsets_in_tokens = true;
    out->document_starts = out->offsets + 8 * (items + 1) + 8 * sizes;
    BASE_TRY(check_items(out, dimensions, out->offsets + 8 * (items + 1), name, error));
    return check_documents(out, name, error);
}

sifr_status data_token_store_parse(const void *index, size_t index_size, const void *data,
                                   size_t data_size, const char *name, data_token_store *out,
                                   sifr_error *error) {
    bool legacy =
        index_size >= sizeof legacy_magic && !memcmp(index, legacy_magic, sizeof legacy_magic);
    *out = (data_token_store){0};
    sifr_status status = legacy ? parse_legacy(index, index_size, data_size, name, out, error)
                                : parse_mapped(index, index_size, data_size, name, out, error);
    if (status == SIFR_OK)
        out->data = (base_map){data, data_size}, out->ids = data;
    else
        *out = (data_token_store){0};
    return status;
}
