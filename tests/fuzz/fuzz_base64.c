/* Any text as a config in base64: no crash, and what is taken for one decodes to the same bytes as
 * by another way, begins an object, and is the config's parser's to judge. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

/* The first 6 bits of which are the digit; both alphabets. */
static char digit_of(unsigned bits, char like) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char digit = digits[bits & 63];
    if (digit == '+' && like == '-') return '-';
    return digit == '/' && like == '_' ? '_' : digit;
}

/* Encoding the bytes gives the digits again, but for the bits of the last one that no byte has. */
static void check_digits(const char *text, const char *bytes, size_t size) {
    size_t length = strlen(text);
    while (length && text[length - 1] == '=') length--;
    must(size == length * 6 / 8);
    for (size_t i = 0; i + 1 < length; i++) {
        unsigned pair = (unsigned)(uint8_t)bytes[i * 6 / 8] << 8;
        if (i * 6 / 8 + 1 < size) pair |= (uint8_t)bytes[i * 6 / 8 + 1];
        must(digit_of(pair >> (10 - i * 6 % 8), text[i]) == text[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1), *bytes = NULL;
    size_t used = 0;
    must(text != NULL);
    if (size) memcpy(text, data, size);
    text[size] = '\0';
    if (config_from_base64(text, &bytes, &used)) {
        json_t *value = NULL;
        sifr_error error = {0};
        must(bytes[used] == '\0' && bytes[strspn(bytes, " \t\r\n")] == '{');
        check_digits(text, bytes, used);
        sifr_status status = config_read_text(bytes, used, "fuzz", &value, &error);
        must(status == SIFR_OK || (error.message[0] && !strpbrk(error.message, "\n\r")));
        json_decref(value);
        free(bytes);
    }
    free(text);
    return 0;
}
