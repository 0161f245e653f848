#include "cli/quote.h"

#include <string.h>

static void put(char *out, size_t size, const char *text, size_t length) {
    size_t used = strlen(out);
    if (used + length + 1 > size) return;
    memcpy(out + used, text, length);
    out[used + length] = '\0';
}

char *cli_quote(const char *word, char *out, size_t size) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./-+=:,@%";
    out[0] = '\0';
    if (word[0] && word[strspn(word, plain)] == '\0') {
        put(out, size, word, strlen(word));
        return out;
    }
    put(out, size, "'", 1);
    for (; *word; word++) {
        if (*word == '\'')
            put(out, size, "'\\''", 4);
        else
            put(out, size, word, 1);
    }
    put(out, size, "'", 1);
    return out;
}
