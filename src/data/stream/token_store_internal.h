/* Private to token_store*.c. */
#ifndef DATA_TOKEN_STORE_INTERNAL_H
#define DATA_TOKEN_STORE_INTERNAL_H

#include "data/stream/token_store.h"

static inline uint64_t token_store_u64(const uint8_t *at) {
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) value = value << 8 | at[i];
    return value;
}

/* At the end of an index: these bytes and a hash. */
static const uint8_t token_store_hash_mark[8] = {'S', 'I', 'F', 'R', 'X', 'X', 'H', '3'};
enum { TOKEN_STORE_HASH_BYTES = 16 };

/* Whether bytes begin as a file of llm.c's does, of tokens or of an evaluation. */
bool token_store_is_llmc(const uint8_t *bytes, size_t size);

#endif
