/* Regular expressions of Python as POSIX has them, for names of modules. What only Python has, and
 * cannot be written otherwise, is refused. */
#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "model/lora.h"

typedef struct translation {
    const char *at;
    char *out;
    size_t used;
    bool bracket;
    int braces;
} translation;

/* regcomp copies what is repeated, so {255} in {255} in {255} would take all memory. */
enum { MOST_REPEATS = 16, MOST_BRACES = 2 };

static void put(translation *t, const char *text) {
    size_t length = strlen(text);
    memcpy(t->out + t->used, text, length + 1);
    t->used += length;
}

static void put_char(translation *t, char c) {
    char text[2] = {c, '\0'};
    put(t, text);
}

/* The character behind a backslash. */
static bool put_escaped(translation *t) {
    static const struct {
        char name;
        const char *outside, *inside;
    } classes[] = {{'d', "[0-9]", "0-9"},
                   {'D', "[^0-9]", NULL},
                   {'w', "[[:alnum:]_]", "[:alnum:]_"},
                   {'W', "[^[:alnum:]_]", NULL},
                   {'s', "[[:space:]]", "[:space:]"},
                   {'S', "[^[:space:]]", NULL},
                   {'b', "\\b", NULL},
                   {'B', "\\B", NULL}};
    char c = *++t->at;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (classes[i].name != c) continue;
        const char *text = t->bracket ? classes[i].inside : classes[i].outside;
        if (text) put(t, text);
        return text != NULL;
    }
    if (c == '\0' || isalnum((unsigned char)c)) return false;
    if (!t->bracket) put(t, "\\");
    if (t->bracket && strchr("]^-\\", c)) return false;
    put_char(t, c);
    return true;
}

static bool repeats_little(translation *t) {
    int value = 0;
    for (const char *p = t->at + 1; *p && *p != '}'; p++) {
        value = isdigit((unsigned char)*p) ? 10 * value + (*p - '0') : 0;
        if (value > MOST_REPEATS) return false;
    }
    return ++t->braces <= MOST_BRACES;
}

static bool put_next(translation *t) {
    char c = *t->at;
    if (c == '\\') return put_escaped(t);
    if (t->bracket) {
        t->bracket = c != ']';
        if (c == '[') return false;
    } else if (c == '[') {
        t->bracket = true;
        put_char(t, c);
        if (t->at[1] == '^') put_char(t, *++t->at);
        return t->at[1] != ']';
    } else if (c == '(' && t->at[1] == '?') {
        if (t->at[2] != ':') return false;
        t->at += 2;
        c = '(';
    } else if (c == '{') {
        if (!repeats_little(t)) return false;
    } else if (strchr("*+?}", c)) {
        put_char(t, c);
        if (t->at[1] == '?') t->at++; /* a lazy one finds the same names */
        return t->at[1] != '*' && t->at[1] != '+' && t->at[1] != '?';
    }
    put_char(t, c);
    return true;
}

/* 0 where it worked. */
static int compile(const char *pattern, bool behind_dot, regex_t *out) {
    translation t = {.at = pattern};
    if (base_alloc(strlen(pattern) * 14 + 32, 1, &t.out, NULL) != SIFR_OK) return REG_ESPACE;
    put(&t, behind_dot ? "^(.*\\.)?(" : "^(");
    bool fits = true;
    for (; fits && *t.at; t.at++) fits = put_next(&t); /* not past a backslash at the end */
    put(&t, ")$");
    int failed = fits && !t.bracket ? regcomp(out, t.out, REG_EXTENDED | REG_NOSUB) : REG_BADPAT;
    free(t.out);
    return failed;
}

sifr_status model_pattern_check(const char *pattern, const char *where, const char *key,
                                sifr_error *error) {
    regex_t compiled;
    if (strlen(pattern) > 4096)
        return base_fail(error, SIFR_USAGE, "%s: %s: the pattern is too long", where, key);
    if (compile(pattern, false, &compiled))
        return base_fail(error, SIFR_USAGE,
                         "%s: %s: \"%.100s\" is no regular expression that is built here; give a "
                         "plainer one, or a list of names",
                         where, key, pattern);
    regfree(&compiled);
    return SIFR_OK;
}

bool model_pattern_matches(const char *pattern, bool behind_dot, const char *text) {
    regex_t compiled;
    if (compile(pattern, behind_dot, &compiled)) return false;
    bool matches = regexec(&compiled, text, 0, NULL, 0) == 0;
    regfree(&compiled);
    return matches;
}
