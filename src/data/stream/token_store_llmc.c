/* llm.c's files of tokens: a header of 256 i32, magic, version and count first, then the tokens. */
#include "data/stream/token_store_internal.h"

enum { HEADER_BYTES = 1024, EVALUATION = 20240522 };

/* What llm.c's dev/data/data_common.py writes. */
static const struct {
    uint32_t magic, version;
    int token_bytes;
} kinds[] = {{20240520, 1, 2}, /* GPT-2 */ {20240801, 7, 4} /* Llama 3 */};

enum { KINDS = sizeof kinds / sizeof *kinds };

static uint32_t load_u32(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

bool token_store_is_llmc(const uint8_t *bytes, size_t size) {
    uint32_t magic = size >= 4 ? load_u32(bytes) : 0;
    return magic == kinds[0].magic || magic == kinds[1].magic || magic == EVALUATION;
}

static sifr_status check_header(const uint8_t *bytes, size_t size, const char *name, int *kind,
                                sifr_error *error) {
    if (!token_store_is_llmc(bytes, size))
        return base_fail(error, SIFR_FAILED,
                         "%s: not a file of llm.c's tokens: it does not begin with its number",
                         name);
    uint32_t magic = load_u32(bytes);
    if (magic == EVALUATION)
        return base_fail(error, SIFR_FAILED,
                         "%s: llm.c's file of an evaluation, which is no text; give files of "
                         "tokens",
                         name);
    if (size < HEADER_BYTES)
        return base_fail(error, SIFR_FAILED, "%s: %zu bytes are no whole header: cut short", name,
                         size);
    *kind = magic == kinds[0].magic ? 0 : 1;
    uint32_t version = load_u32(bytes + 4);
    if (version == kinds[*kind].version) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: version %u of llm.c's file, %u is known", name,
                     version, kinds[*kind].version);
}

sifr_status data_token_store_parse_llmc(const void *data, size_t size, const char *name,
                                        data_token_store *out, sifr_error *error) {
    const uint8_t *bytes = data;
    int kind = 0;
    *out = (data_token_store){0};
    BASE_TRY(check_header(bytes, size, name, &kind, error));
    uint64_t count = load_u32(bytes + 8), wide = (uint64_t)kinds[kind].token_bytes;
    if (size - HEADER_BYTES != count * wide)
        return base_fail(error, SIFR_FAILED,
                         "%s: %zu bytes, but its header says %llu tokens of %llu bytes: damaged or "
                         "cut short",
                         name, size, (unsigned long long)count, (unsigned long long)wide);
    out->token_bytes = (int)wide;
    out->tokens = (int64_t)count;
    out->sequences = out->documents = 1;
    out->ids = bytes + HEADER_BYTES;
    out->data = (base_map){data, size};
    return SIFR_OK;
}
