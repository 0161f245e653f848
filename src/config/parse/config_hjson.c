/* HJSON, as DeepSpeed reads its config (hjson 3.1): keys and strings without quotes, strings in
 * single or three quotes, commas and the outer braces left out, comments. Depth and the number of
 * values are bounded as in base/json.h. Where it differs: a string without quotes may hold no
 * double quote, so that a forgotten comma does not make text of the keys behind it. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/json.h"
#include "config/config_private.h"

typedef struct hjson_reader {
    const char *text, *name;
    size_t size, at, values;
    int depth;
    sifr_error *error;
} hjson_reader;

SIFR_PRINTF(3, 4)
static sifr_status hjson_fail(const hjson_reader *r, size_t at, const char *what, ...) {
    char text[160];
    size_t line = 1, column = 1;
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(text, sizeof text, what, arguments);
    va_end(arguments);
    for (size_t i = 0; i < at && i < r->size; i++) {
        column = r->text[i] == '\n' ? 1 : column + 1;
        line += r->text[i] == '\n';
    }
    return base_fail(r->error, SIFR_USAGE, "%s: not valid HJSON at line %zu, column %zu: %s",
                     r->name, line, column, text);
}

/* The character `ahead` of the next one; 0 behind the end. */
static char hjson_peek(const hjson_reader *r, size_t ahead) {
    return ahead < r->size - r->at ? r->text[r->at + ahead] : 0;
}

static bool hjson_is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool hjson_is_comment(const hjson_reader *r) {
    char c = hjson_peek(r, 0), next = hjson_peek(r, 1);
    return c == '#' || (c == '/' && (next == '/' || next == '*'));
}

/* To the next character that is neither blank nor of a comment. */
static sifr_status hjson_skip(hjson_reader *r) {
    while (r->at < r->size) {
        size_t begin = r->at;
        if (hjson_is_blank(hjson_peek(r, 0))) {
            r->at++;
        } else if (!hjson_is_comment(r)) {
            break;
        } else if (hjson_peek(r, 1) != '*' || hjson_peek(r, 0) == '#') {
            while (r->at < r->size && r->text[r->at] != '\n') r->at++;
        } else {
            for (r->at += 2; r->at < r->size; r->at++)
                if (hjson_peek(r, 0) == '*' && hjson_peek(r, 1) == '/') break;
            if (r->at >= r->size) return hjson_fail(r, begin, "the comment has no end; add */");
            r->at += 2;
        }
    }
    return SIFR_OK;
}

static sifr_status hjson_text(const hjson_reader *r, size_t at, const char *text, size_t length,
                              json_t **out) {
    *out = json_stringn(text, length);
    return *out ? SIFR_OK : hjson_fail(r, at, "the string is not valid UTF-8");
}

static bool hjson_hex(const hjson_reader *r, unsigned *code) {
    char digits[5] = "";
    for (size_t i = 0; i < 4; i++) {
        digits[i] = hjson_peek(r, i);
        if (!isxdigit((unsigned char)digits[i])) return false;
    }
    *code = (unsigned)strtoul(digits, NULL, 16);
    return true;
}

static size_t hjson_utf8(unsigned code, char *out) {
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length; length > 1 && i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(length > 1 ? lead[length] | code : code);
    return length;
}

/* Behind \u. */
static sifr_status hjson_code(hjson_reader *r, char *out, size_t *used) {
    unsigned code, low = 0;
    size_t begin = r->at;
    if (!hjson_hex(r, &code)) return hjson_fail(r, begin, "\\u needs four hexadecimal digits");
    r->at += 4;
    if (code >= 0xd800 && code < 0xdc00 && hjson_peek(r, 0) == '\\' && hjson_peek(r, 1) == 'u') {
        r->at += 2;
        if (!hjson_hex(r, &low)) return hjson_fail(r, r->at, "\\u needs four hexadecimal digits");
        r->at += 4;
        bool pair = low >= 0xdc00 && low < 0xe000;
        if (pair) code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    if (code == 0 || (code >= 0xd800 && code < 0xe000))
        return hjson_fail(r, begin, "\\u stands for no character");
    *used += hjson_utf8(code, out + *used);
    return SIFR_OK;
}

static sifr_status hjson_escape(hjson_reader *r, char *out, size_t *used) {
    static const char names[] = "\"'\\/bfnrt", values[] = "\"'\\/\b\f\n\r\t";
    char c = hjson_peek(r, 0);
    if (c == 'u') {
        r->at++;
        return hjson_code(r, out, used);
    }
    const char *found = c ? strchr(names, c) : NULL;
    if (!found) return hjson_fail(r, r->at, "this is no escape; write \\\\ for a backslash");
    out[(*used)++] = values[found - names];
    r->at++;
    return SIFR_OK;
}

/* In single or double quotes. An escape is never shorter than what it stands for. */
static sifr_status hjson_quoted(hjson_reader *r, json_t **out) {
    char quote = hjson_peek(r, 0), *text;
    size_t begin = r->at++, used = 0, length = r->at;
    while (length < r->size && r->text[length] != quote && r->text[length] != '\n')
        length += r->text[length] == '\\' ? 2 : 1;
    BASE_TRY(base_alloc(length - begin + 1, 1, &text, r->error));
    sifr_status status = SIFR_OK;
    while (status == SIFR_OK && hjson_peek(r, 0) != quote) {
        char c = hjson_peek(r, 0);
        if (r->at >= r->size) {
            status = hjson_fail(r, begin, "the string has no closing quote");
        } else if ((unsigned char)c < 32) {
            status = hjson_fail(r, r->at, "a string in quotes ends on its line");
        } else {
            r->at++;
            if (c != '\\')
                text[used++] = c;
            else
                status = hjson_escape(r, text, &used);
        }
    }
    r->at++;
    if (status == SIFR_OK) status = hjson_text(r, begin, text, used, out);
    free(text);
    return status;
}

static void hjson_skip_indent(hjson_reader *r, size_t most) {
    for (char c = hjson_peek(r, 0); most > 0 && (c == ' ' || c == '\t' || c == '\r'); most--) {
        r->at++;
        c = hjson_peek(r, 0);
    }
}

/* Between three quotes: lines, less the indentation of the first quote and the last line end. */
static sifr_status hjson_lines(hjson_reader *r, json_t **out) {
    size_t begin = r->at, indent = 0, used = 0;
    char *text;
    while (indent < begin && r->text[begin - indent - 1] != '\n') indent++;
    r->at += 3;
    hjson_skip_indent(r, SIZE_MAX);
    if (hjson_peek(r, 0) == '\n') {
        r->at++;
        hjson_skip_indent(r, indent);
    }
    const char *end = NULL;
    for (size_t i = r->at; !end && i + 2 < r->size; i++)
        if (memcmp(r->text + i, "'''", 3) == 0) end = r->text + i;
    if (!end) return hjson_fail(r, begin, "the string has no closing quotes '''");
    BASE_TRY(base_alloc((size_t)(end - r->text) - r->at + 1, 1, &text, r->error));
    while (r->text + r->at < end) {
        char c = r->text[r->at++];
        if (c != '\r') text[used++] = c;
        if (c == '\n') hjson_skip_indent(r, indent);
    }
    r->at = (size_t)(end - r->text) + 3;
    if (used && text[used - 1] == '\n') used--;
    sifr_status status = hjson_text(r, begin, text, used, out);
    free(text);
    return status;
}

/* The length of the JSON number at `text`, which `end` follows; 0 if there is none. */
static size_t hjson_digits(const char *text, const char *end) {
    size_t count = 0;
    while (text + count < end && isdigit((unsigned char)text[count])) count++;
    return count;
}

static bool hjson_is_number(const char *text, const char *end, bool *whole) {
    const char *c = text + (*text == '-');
    size_t count = hjson_digits(c, end);
    if (count == 0 || (count > 1 && *c == '0')) return false;
    c += count;
    *whole = c == end;
    if (c < end && *c == '.') {
        count = hjson_digits(c + 1, end);
        if (count == 0) return false;
        c += 1 + count;
    }
    if (c < end && (*c == 'e' || *c == 'E')) {
        c++;
        c += c < end && (*c == '-' || *c == '+');
        count = hjson_digits(c, end);
        if (count == 0) return false;
        c += count;
    }
    return c == end;
}

/* A number or a word of JSON's between `begin` and `end`; *out is NULL where it is neither. */
static sifr_status hjson_word(const hjson_reader *r, size_t begin, size_t end, json_t **out) {
    const char *text = r->text + begin;
    size_t length = end - begin;
    bool whole = false;
    *out = NULL;
    if (length == 4 && memcmp(text, "null", 4) == 0) *out = json_null();
    if (length == 4 && memcmp(text, "true", 4) == 0) *out = json_true();
    if (length == 5 && memcmp(text, "false", 5) == 0) *out = json_false();
    if (*out || length == 0 || !hjson_is_number(text, text + length, &whole)) return SIFR_OK;
    char number[64];
    if (length >= sizeof number) return hjson_fail(r, begin, "the number has too many digits");
    memcpy(number, text, length);
    number[length] = 0;
    errno = 0;
    double real = strtod(number, NULL);
    if (!isfinite(real)) return hjson_fail(r, begin, "the number is too large");
    errno = 0;
    long long integer = whole ? strtoll(number, NULL, 10) : 0;
    if (errno) return hjson_fail(r, begin, "the number is too large");
    *out = whole ? json_integer(integer) : json_real(real);
    return *out ? SIFR_OK : base_fail_alloc(r->error, 32);
}

/* Without quotes: a number or a word up to a comma, bracket or comment, else text up to the end of
 * the line. */
static sifr_status hjson_bare(hjson_reader *r, json_t **out) {
    size_t begin = r->at, end = begin;
    if (r->at >= r->size) return hjson_fail(r, begin, "a value is missing");
    if (strchr("{}[],:", hjson_peek(r, 0)))
        return hjson_fail(r, begin, "a value is missing before %c", hjson_peek(r, 0));
    bool tried = false; /* a number or word ends at the first of those */
    for (;; r->at++) {
        char c = hjson_peek(r, 0);
        bool line_end = r->at >= r->size || c == '\n' || c == '\r';
        if (!line_end && (tried || (!strchr(",}]", c) && !hjson_is_comment(r)))) continue;
        end = r->at;
        while (end > begin && hjson_is_blank(r->text[end - 1])) end--;
        if (!tried) {
            BASE_TRY(hjson_word(r, begin, end, out));
            if (*out) return SIFR_OK;
        }
        tried = true;
        if (line_end) break;
    }
    if (memchr(r->text + begin, '"', end - begin))
        return hjson_fail(r, begin, "text without quotes holds a quote; is a comma missing?");
    return hjson_text(r, begin, r->text + begin, end - begin, out);
}

static sifr_status hjson_value(hjson_reader *r, json_t **out);

static sifr_status hjson_key(hjson_reader *r, json_t **out) {
    char c = hjson_peek(r, 0);
    if (c == '"' || c == '\'') return hjson_quoted(r, out);
    size_t begin = r->at;
    while (r->at < r->size && !strchr("{}[],: \t\r\n", r->text[r->at])) r->at++;
    if (r->at >= r->size) return hjson_fail(r, begin, "a closing bracket or a key is missing");
    if (r->at == begin) return hjson_fail(r, begin, "a key is missing before %c", hjson_peek(r, 0));
    return hjson_text(r, begin, r->text + begin, r->at - begin, out);
}

/* One "key: value" into `object`. */
static sifr_status hjson_member(hjson_reader *r, json_t *object) {
    json_t *key = NULL, *value = NULL;
    size_t begin = r->at;
    BASE_TRY(hjson_key(r, &key));
    const char *name = json_string_value(key);
    sifr_status status = SIFR_OK;
    if (strlen(name) != json_string_length(key)) status = hjson_fail(r, begin, "a key with a NUL");
    if (status == SIFR_OK) status = hjson_skip(r);
    if (status == SIFR_OK && hjson_peek(r, 0) != ':')
        status = hjson_fail(r, r->at, "a colon is missing behind the key");
    if (status == SIFR_OK) {
        r->at++;
        status = hjson_value(r, &value);
    }
    if (status == SIFR_OK && json_object_get(object, name)) {
        char quoted[80];
        status = hjson_fail(r, begin, "duplicate key %s", config_quote(name, quoted, 80));
    }
    if (status == SIFR_OK && json_object_set(object, name, value) != 0)
        status = base_fail_alloc(r->error, 64);
    json_decref(value);
    json_decref(key);
    return status;
}

/* Up to `close`; 0: up to the end of the text. */
static sifr_status hjson_members(hjson_reader *r, char close, json_t *into) {
    for (;;) {
        BASE_TRY(hjson_skip(r));
        if (r->at >= r->size && close == 0) return SIFR_OK;
        if (close && hjson_peek(r, 0) == close) {
            r->at++;
            return SIFR_OK;
        }
        if (r->at >= r->size) return hjson_fail(r, r->at, "a closing %c is missing", close);
        if (json_is_array(into)) {
            json_t *value = NULL;
            BASE_TRY(hjson_value(r, &value));
            if (json_array_append_new(into, value) != 0) return base_fail_alloc(r->error, 64);
        } else {
            BASE_TRY(hjson_member(r, into));
        }
        BASE_TRY(hjson_skip(r));
        if (hjson_peek(r, 0) == ',') r->at++;
    }
}

static sifr_status hjson_nested(hjson_reader *r, char close, json_t **out) {
    json_t *into = close == ']' ? json_array() : json_object();
    if (!into) return base_fail_alloc(r->error, 64);
    sifr_status status = SIFR_OK;
    if (++r->depth > BASE_JSON_DEPTH)
        status = hjson_fail(r, r->at, "nested deeper than %d levels", BASE_JSON_DEPTH);
    if (status == SIFR_OK) status = hjson_members(r, close, into);
    r->depth--;
    if (status == SIFR_OK)
        *out = into;
    else
        json_decref(into);
    return status;
}

static sifr_status hjson_value(hjson_reader *r, json_t **out) {
    BASE_TRY(hjson_skip(r));
    if (++r->values > BASE_JSON_VALUES) return hjson_fail(r, r->at, "too many values");
    char c = hjson_peek(r, 0);
    if (c == '{' || c == '[') {
        r->at++;
        return hjson_nested(r, c == '{' ? '}' : ']', out);
    }
    if (c == '\'' && hjson_peek(r, 1) == '\'' && hjson_peek(r, 2) == '\'')
        return hjson_lines(r, out);
    if (c == '"' || c == '\'') return hjson_quoted(r, out);
    return hjson_bare(r, out);
}

sifr_status config_hjson(const char *text, size_t size, const char *name, json_t **out,
                         sifr_error *error) {
    hjson_reader r = {.text = text, .name = name, .size = size, .error = error};
    const char *nul = size ? memchr(text, 0, size) : NULL;
    if (nul) return hjson_fail(&r, (size_t)(nul - text), "a NUL byte");
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) r.at = 3;
    BASE_TRY(hjson_skip(&r));
    if (r.at >= r.size) return hjson_fail(&r, r.at, "nothing is there");
    char open = hjson_peek(&r, 0);
    bool bracket = open == '{' || open == '[';
    json_t *root = NULL;
    BASE_TRY(bracket ? hjson_value(&r, &root) : hjson_nested(&r, 0, &root));
    sifr_status status = hjson_skip(&r);
    if (status == SIFR_OK && r.at < r.size)
        status = hjson_fail(&r, r.at, "more text behind the end");
    if (status == SIFR_OK)
        *out = root;
    else
        json_decref(root);
    return status;
}

bool config_hjson_likely(const char *text, size_t size) {
    hjson_reader r = {.text = text, .name = "", .size = size};
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) r.at = 3;
    if (hjson_skip(&r) != SIFR_OK || r.at >= size) return false;
    if (text[r.at] != '{') return text[r.at] == '"' || isalpha((unsigned char)text[r.at]);
    r.at++;
    return hjson_skip(&r) == SIFR_OK && r.at < size && isalpha((unsigned char)text[r.at]);
}
