/* The byte alphabet of GPT-2: printable bytes stand for themselves, the others, in their order, for
 * the characters from U+0100 on. */
#include "base/checked.h"
#include "base/heap.h"
#include "text/tokenizer/tokenizer_internal.h"

static bool printable(uint32_t c) {
    return (c >= 0x21 && c <= 0x7E) || (c >= 0xA1 && c <= 0xAC) || (c >= 0xAE && c <= 0xFF);
}

uint32_t text_byte_character(uint8_t byte) {
    if (printable(byte)) return byte;
    if (byte <= 0x20) return 0x100u + byte;
    return byte == 0xAD ? 0x143u : 0x121u + (byte - 0x7Fu);
}

int text_character_byte(uint32_t c) {
    if (c < 0x100) return printable(c) ? (int)c : -1;
    if (c <= 0x120) return (int)(c - 0x100);
    if (c <= 0x142) return (int)(c - 0x121 + 0x7F);
    return c == 0x143 ? 0xAD : -1;
}

bool text_bytes_of_content(const char *content, size_t size, uint8_t *out, size_t *count) {
    const uint8_t *p = (const uint8_t *)content, *end = p + size;
    *count = 0;
    while (p < end) {
        size_t length;
        int byte = text_character_byte(text_utf8_get(p, &length));
        if (byte < 0) return false;
        out[(*count)++] = (uint8_t)byte;
        p += length;
    }
    return true;
}

sifr_status text_tokenizer_text_append(text_tokenizer_text *text, const void *bytes, size_t size,
                                       sifr_error *error) {
    size_t total;
    if (!base_add_size(text->count, size, &total)) return base_fail_alloc(error, SIZE_MAX);
    BASE_TRY(base_grow(&text->bytes, &text->capacity, total, 1, error));
    if (size) memcpy(text->bytes + text->count, bytes, size);
    text->count = total;
    return SIFR_OK;
}

sifr_status text_content_of_bytes(const uint8_t *bytes, size_t size, text_tokenizer_text *out,
                                  sifr_error *error) {
    for (size_t i = 0; i < size; i++) {
        uint8_t character[4];
        size_t length = text_utf8_put(text_byte_character(bytes[i]), character);
        BASE_TRY(text_tokenizer_text_append(out, character, length, error));
    }
    return SIFR_OK;
}
