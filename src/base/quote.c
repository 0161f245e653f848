#include "base/quote.h"

#include <stdio.h>
#include <string.h>

#include "base/columns.h"

static void put(char *out, size_t size, const char *text, size_t length) {
    size_t used = strlen(out);
    if (used + length + 1 > size) return;
    memcpy(out + used, text, length);
    out[used + length] = '\0';
}

/* Whether a terminal shows all of it, and acts on nothing. */
static bool is_shown(const char *word) {
    char shown[BASE_QUOTED + 16];
    return strcmp(base_show_text(word, true, shown, sizeof shown), word) == 0;
}

static void put_quoted(const char *word, char *out, size_t size) {
    put(out, size, "'", 1);
    for (; *word; word++) {
        if (*word == '\'')
            put(out, size, "'\\''", 4);
        else
            put(out, size, word, 1);
    }
    put(out, size, "'", 1);
}

/* By printf, which each shell has. A shell takes line feeds off the end of what a command prints:
 * there only $'...' does, which dash does not read. */
static void put_escaped(const char *word, char *out, size_t size) {
    size_t count = strlen(word);
    bool printed = word[count - 1] != '\n';
    const char *begin = printed ? "\"$(printf '" : "$'";
    put(out, size, begin, strlen(begin));
    for (; *word; word++) {
        char byte[8];
        bool plain = *word >= ' ' && *word <= '~' && !strchr("'\\%", *word);
        int length = snprintf(byte, sizeof byte, plain ? "%c" : "\\%03o", (unsigned char)*word);
        put(out, size, byte, (size_t)length);
    }
    put(out, size, "')\"", printed ? 3 : 1);
}

char *base_quote(const char *word, char *out, size_t size) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./-+=:,@%";
    out[0] = '\0';
    if (word[0] && word[strspn(word, plain)] == '\0')
        put(out, size, word, strlen(word));
    else if (is_shown(word))
        put_quoted(word, out, size);
    else
        put_escaped(word, out, size);
    return out;
}
