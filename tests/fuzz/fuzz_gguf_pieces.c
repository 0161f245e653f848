/* The reader of tokenizer.model on any bytes: no crash, one line of message, and texts that lie in
 * the bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formats/gguf/gguf_tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    enum { TOKENS = 8 };
    formats_gguf_token list[TOKENS] = {0};
    formats_gguf_tokens tokens = {.list = list, .count = TOKENS};
    sifr_error error = {0};
    if (formats_gguf_sentencepiece_parse((const char *)data, size, "input", &tokens, &error) !=
        SIFR_OK) {
        must(error.status == SIFR_FAILED && error.message[0] && !strchr(error.message, '\n'));
        return 0;
    }
    for (int i = 0; i < TOKENS; i++) {
        const uint8_t *text = (const uint8_t *)list[i].text;
        if (list[i].size) must(text >= data && list[i].size <= (size_t)(data + size - text));
    }
    return 0;
}
