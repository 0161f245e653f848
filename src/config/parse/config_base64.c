/* A config in base64: what DeepSpeed's launchers pass where a file cannot be. */
#include <stdlib.h>
#include <string.h>

#include "config/config_private.h"

static int base64_digit(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c ? strchr(digits, c == '-' ? '+' : c == '_' ? '/' : c) : NULL;
    return found ? (int)(found - digits) : -1;
}

bool config_from_base64(const char *text, char **out, size_t *size) {
    size_t length = strlen(text), used = 0;
    while (length > 0 && text[length - 1] == '=') length--;
    if (length < 4 || length % 4 == 1) return false;
    char *bytes = malloc(length / 4 * 3 + 4);
    if (!bytes) return false;
    unsigned bits = 0;
    for (size_t i = 0; i < length; i++) {
        int digit = base64_digit(text[i]);
        if (digit < 0) {
            free(bytes);
            return false;
        }
        bits = (bits << 6 | (unsigned)digit) & 0xffffff;
        if (i % 4 > 0) bytes[used++] = (char)(bits >> (6 - 2 * (i % 4)) & 0xff);
    }
    bytes[used] = 0;
    if (bytes[strspn(bytes, " \t\r\n")] != '{') {
        free(bytes);
        return false;
    }
    *out = bytes;
    *size = used;
    return true;
}
