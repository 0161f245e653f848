/* DeepSpeed reads its config as HJSON. Of what HJSON adds, most files use comments and commas
 * before a closing bracket alone: both become blanks here, so that the JSON parser's line and
 * column stay right. What is still no JSON then goes to config_hjson.c. */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "config/config_private.h"

static sifr_status config_refuse_utf16(const unsigned char *text, size_t size, const char *name,
                                       sifr_error *error) {
    bool mark =
        size >= 2 && ((text[0] == 0xff && text[1] == 0xfe) || (text[0] == 0xfe && text[1] == 0xff));
    if (mark || (size >= 2 && (text[0] == 0 || text[1] == 0))) {
        return base_fail(error, SIFR_USAGE, "%s: is UTF-16, not UTF-8; save it as UTF-8", name);
    }
    return SIFR_OK;
}

/* Blanks all but the line ends in [from, to). */
static void config_blank(char *text, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        if (text[i] != '\n' && text[i] != '\r') text[i] = ' ';
    }
}

static size_t config_line_end(const char *text, size_t size, size_t i) {
    while (i < size && text[i] != '\n') i++;
    return i;
}

/* Behind the closing quote of the string that begins at `i`. */
static size_t config_string_end(const char *text, size_t size, size_t i) {
    for (i++; i < size && text[i] != '"'; i++) {
        if (text[i] == '\\') i++;
    }
    return i < size ? i + 1 : size;
}

static sifr_status config_blank_comments(char *text, size_t size, const char *name,
                                         sifr_error *error) {
    for (size_t i = 0; i < size;) {
        char next = i + 1 < size ? text[i + 1] : 0;
        size_t end = i + 1;
        if (text[i] == '"') {
            end = config_string_end(text, size, i);
        } else if (text[i] == '#' || (text[i] == '/' && next == '/')) {
            end = config_line_end(text, size, i);
            config_blank(text, i, end);
        } else if (text[i] == '/' && next == '*') {
            end = i + 2;
            while (end + 1 < size && !(text[end] == '*' && text[end + 1] == '/')) end++;
            if (end + 1 >= size) {
                int line = 1;
                for (size_t j = 0; j < i; j++) line += text[j] == '\n';
                return base_fail(error, SIFR_USAGE,
                                 "%s: the comment that begins at line %d has no end; add */", name,
                                 line);
            }
            end += 2;
            config_blank(text, i, end);
        }
        i = end;
    }
    return SIFR_OK;
}

static void config_blank_trailing_commas(char *text, size_t size) {
    size_t comma = SIZE_MAX; /* of a comma that may be one too many */
    char last = 0;
    for (size_t i = 0; i < size;) {
        char c = text[i];
        size_t end = c == '"' ? config_string_end(text, size, i) : i + 1;
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
            if ((c == '}' || c == ']') && comma != SIZE_MAX) text[comma] = ' ';
            bool after_value = last && !strchr(",:[{", last);
            comma = c == ',' && after_value ? i : SIZE_MAX;
            last = c;
        }
        i = end;
    }
}

sifr_status config_text_to_json(const char *text, size_t size, const char *name, char **out,
                                sifr_error *error) {
    BASE_TRY(config_refuse_utf16((const unsigned char *)text, size, name, error));
    char *copy;
    BASE_TRY(base_copy_text(text, size, &copy, error));
    if (size >= 3 && memcmp(copy, "\xef\xbb\xbf", 3) == 0) memset(copy, ' ', 3);
    sifr_status status = config_blank_comments(copy, size, name, error);
    if (status != SIFR_OK) {
        free(copy);
        return status;
    }
    config_blank_trailing_commas(copy, size);
    *out = copy;
    return SIFR_OK;
}
