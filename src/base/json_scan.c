/* JSON text before jansson parses it: strings, numbers, and what its parser would refuse. */
#include "base/json_scan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* The end of the string that begins at `at`: its closing quote, or the end of the text. */
static size_t string_end(const char *text, size_t size, size_t at) {
    for (at++; at < size && text[at] != '"'; at++)
        if (text[at] == '\\') at++;
    return at;
}

/* jansson's own limit is 2,048 levels; sifr's files need a few. Counting brackets outside of
 * strings is enough, since the parser checks their contents afterwards. Commas and brackets bound
 * the number of values, each of which takes far more memory than its text. */
const char *base_json_excess(const char *text, size_t size) {
    int depth = 0;
    size_t values = 0;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (c == '"') {
            i = string_end(text, size, i);
        } else if (c == '[' || c == '{') {
            if (++depth > BASE_JSON_DEPTH) return "nested deeper than 64 levels";
            values++;
        } else if (c == ']' || c == '}') {
            depth--;
        } else if (c == ',') {
            values++;
        }
    }
    return values > BASE_JSON_VALUES ? "of more than 4,194,304 values" : NULL;
}

/* Where no number is there, the parser reports it. */
size_t base_json_number(const char *text) {
    static const char digits[] = "0123456789";
    size_t at = *text == '-', count = strspn(text + at, digits);
    if (count == 0 || (count > 1 && text[at] == '0')) return 0;
    at += count;
    if (text[at] == '.') {
        count = strspn(text + at + 1, digits);
        if (count == 0) return 0;
        at += 1 + count;
    }
    if (text[at] != 'e' && text[at] != 'E') return at;
    at += 1 + (text[at + 1] == '-' || text[at + 1] == '+');
    count = strspn(text + at, digits);
    return count ? at + count : 0;
}

/* Replaces an integer beyond 64 bits by the nearest double, in 13 digits, and a number beyond
 * double by BASE_JSON_HUGE. The number keeps its `size` characters, so positions in messages stay
 * right. */
static void narrow(char *at, size_t size) {
    char number[32], *end;
    double value = strtod(at, &end);
    if (end != at + size) return; /* 0x10 is not JSON */
    if (isinf(value)) {
        snprintf(number, sizeof number, "%s" BASE_JSON_HUGE, value < 0 ? "-" : "");
    } else {
        errno = 0;
        (void)strtoll(at, NULL, 10);
        if (errno != ERANGE || strcspn(at, ".eE") < size) return;
        snprintf(number, sizeof number, "%.12e", value);
    }
    memset(at, ' ', size);
    memcpy(at, number, strlen(number));
}

/* Python writes Infinity, -Infinity and NaN, which are not JSON. An infinity is like a number
 * beyond double, and what is not a number becomes a value that no reader takes for one. */
static size_t narrow_word(char *at, bool begins) {
    static const struct {
        const char *word, *instead;
    } words[] = {{"Infinity", "9e307   "}, {"-Infinity", "-9e307   "}, {"NaN", "[] "}};
    for (size_t w = 0; begins && w < sizeof words / sizeof *words; w++) {
        size_t length = strlen(words[w].word);
        if (strncmp(at, words[w].word, length) != 0) continue;
        if (at[length] && !strchr(",]} \t\r\n", at[length])) return 0;
        memcpy(at, words[w].instead, length);
        return length;
    }
    return 0;
}

bool base_json_fits(const char *number, size_t size) {
    char *end;
    if (isinf(strtod(number, &end))) return false;
    errno = 0;
    (void)strtoll(number, NULL, 10);
    return errno != ERANGE || strcspn(number, ".eE") < size;
}

/* Replaces numbers that jansson refuses as out of range. Most belong to keys that nobody reads
 * (transformers writes a model_max_length of 10^30). A key that is read gets a double that no
 * reader accepts as a count, or one that base_json_double refuses. `text` ends with a NUL. */
void base_json_narrow_all(char *text, size_t size) {
    bool begins = true; /* a value */
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        size_t word = narrow_word(text + i, begins);
        begins = c == ':' || c == ',' || c == '[' || (begins && strchr(" \t\r\n", c));
        if (word) {
            i += word - 1;
        } else if (c == '"') {
            i = string_end(text, size, i);
        } else if ((c >= '0' && c <= '9') || c == '-') {
            size_t length = base_json_number(text + i);
            if (length == 0) return;
            narrow(text + i, length);
            i += length - 1;
        }
    }
}
