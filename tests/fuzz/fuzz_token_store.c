/* The reader of token stores on any bytes: no crash, one line of message, and documents that lie
 * inside of the data. Input: u16 size of the index, the index, the tokens; where that size is
 * 65535, a file of llm.c's. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data/stream/token_store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    size_t index_size = (size_t)(data[0] | data[1] << 8);
    bool alone = index_size == UINT16_MAX;
    data += 2, size -= 2;
    if (index_size > size) index_size = size;
    data_token_store store;
    sifr_error error = {0};
    sifr_status status = alone ? data_token_store_parse_llmc(data, size, "input", &store, &error)
                               : data_token_store_parse(data, index_size, data + index_size,
                                                        size - index_size, "input", &store, &error);
    if (status != SIFR_OK) {
        must(error.status == SIFR_FAILED && error.message[0] && !strchr(error.message, '\n'));
        return 0;
    }
    int64_t next = 0;
    for (int64_t d = 0; d < store.documents; d++) {
        int64_t first, count;
        data_token_store_document(&store, d, &first, &count);
        must(first == next && count >= 0 && count <= store.tokens - first);
        int32_t *ids = malloc((size_t)count * sizeof *ids + 1);
        data_token_store_read(&store, first, count, ids);
        for (int64_t i = 0; i < count; i++) must(ids[i] >= -1);
        free(ids);
        next = first + count;
    }
    must(next == store.tokens);
    (void)data_token_store_check(&store, 1000, "input", &error);
    data_token_store_close(&store);
    return 0;
}
