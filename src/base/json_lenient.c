/* A row as Python's json reads it, which takes more than JSON has: NaN, Infinity, numbers of any
 * size, \u0000, halves of surrogate pairs, keys that come twice. */
#include "base/json_lenient.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "base/json_scan.h"

static const char fault_key[] = "\x01not JSON";

/* What a member holds that is none. */
typedef enum json_oddity {
    ODD_NONE,
    ODD_NUMBER, /* NaN or an infinity */
    ODD_RANGE,  /* a number beyond 64 bits or a double */
    ODD_NUL,
    ODD_SURROGATE,
    ODD_KEY,  /* a key that comes twice */
    ODD_TWICE /* the member itself does */
} json_oddity;

static json_t *make_fault(json_oddity oddity) {
    base_assert(oddity != ODD_NONE);
    static const char *const reasons[] = {
        [ODD_NUMBER] = "holds NaN or Infinity, which JSON does not have",
        [ODD_RANGE] = "holds a number that is too large",
        [ODD_NUL] = "holds \\u0000, which is not supported in a text",
        [ODD_SURROGATE] = "holds half of a surrogate pair (\\ud800 to \\udfff), which is no text",
        [ODD_KEY] = "holds an object with the same key twice",
        [ODD_TWICE] = "stands twice in the row",
    };
    return json_pack("{s:s}", fault_key, reasons[oddity]);
}

const char *base_json_fault(const json_t *value) {
    return json_string_value(json_object_get(value, fault_key));
}

/* ---- making JSON of it ---- */

/* The four digits of \uXXXX at `at`, or -1. */
static int escaped_at(const char *at) {
    char digits[5] = "";
    if (at[0] != '\\' || at[1] != 'u') return -1;
    for (int i = 0; i < 4; i++) {
        if (!strchr("0123456789abcdefABCDEF", at[2 + i]) || !at[2 + i]) return -1;
        digits[i] = at[2 + i];
    }
    return (int)strtol(digits, NULL, 16);
}

/* Of an escape in a string: puts U+FFFD in place of what is no character; returns its bytes. */
static size_t mend_escape(char *at, json_oddity *oddity) {
    int code = escaped_at(at);
    bool high = code >= 0xd800 && code < 0xdc00;
    if (code < 0) return at[1] ? 2 : 1;
    if (high) {
        int low = escaped_at(at + 6);
        if (low >= 0xdc00 && low < 0xe000) return 12;
    }
    if (code && (code < 0xd800 || code > 0xdfff)) return 6;
    *oddity = code ? ODD_SURROGATE : ODD_NUL;
    memcpy(at, "\\ufffd", 6);
    return 6;
}

static size_t blank(char *at, size_t size, json_oddity found, json_oddity *oddity) {
    base_assert(size > 0);
    memset(at, ' ', size);
    *at = '0';
    *oddity = found;
    return size;
}

/* Of what stands outside of strings: puts 0 in place of what is no number; returns its bytes.
 * `first`: it may begin there. */
static size_t mend_number(char *at, bool first, json_oddity *oddity) {
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; first && i < sizeof words / sizeof *words; i++)
        if (strncmp(at, words[i], strlen(words[i])) == 0)
            return blank(at, strlen(words[i]), ODD_NUMBER, oddity);
    size_t size = first ? base_json_number(at) : 0;
    if (!size) return 1;
    return base_json_fits(at, size) ? size : blank(at, size, ODD_RANGE, oddity);
}

/* Turns the text, which a NUL ends, into JSON of the same length, where it can. */
static json_oddity mend(char *text) {
    json_oddity oddity = ODD_NONE;
    bool string = false;
    for (char *at = text; *at;) {
        if (string && *at == '\\') {
            at += mend_escape(at, &oddity);
        } else if (string || *at == '"') {
            string ^= *at == '"';
            at++;
        } else {
            bool first = at == text || strchr(" \t\r\n[{:,", at[-1]);
            at += mend_number(at, first, &oddity);
        }
    }
    return oddity;
}

static char *copy_of(const char *text, size_t size) {
    char *copy = malloc(size + 1);
    if (!copy) return NULL;
    memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

/* A value or a key; a fault in its place where it is none of JSON, NULL where it is none of
 * Python's either. *key: the key with U+FFFD for what is no character. */
static json_t *read_value(const char *text, size_t size, bool key) {
    json_error_t where;
    json_t *value = json_loadb(text, size, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &where);
    char *copy = value ? NULL : copy_of(text, size);
    if (!copy) return value;
    json_oddity oddity = mend(copy);
    json_t *mended = json_loadb(copy, size, JSON_DECODE_ANY, &where);
    free(copy);
    if (key || !mended) return mended;
    json_decref(mended);
    return make_fault(oddity ? oddity : ODD_KEY);
}

/* ---- members ---- */

static const char *skip_blanks(const char *at, const char *end) {
    while (at < end && *at && strchr(" \t\r\n", *at)) at++;
    return at;
}

/* Behind a string, or behind a value: at the comma or bracket after it. */
static const char *find_end(const char *at, const char *end, bool key) {
    int depth = 0;
    bool string = false;
    for (; at < end; at++) {
        if (string && *at == '\\') {
            at++;
        } else if (*at == '"') {
            string = !string;
            if (key && !string) return at + 1;
        } else if (!string) {
            if (depth == 0 && strchr(",}]", *at)) return at;
            depth += *at == '{' || *at == '[';
            depth -= *at == '}' || *at == ']';
        }
    }
    return end;
}

static bool put_member(json_t *row, json_t *key, json_t *value) {
    const char *name = json_string_value(key);
    bool put = name && value;
    if (put && json_object_get(row, name)) {
        json_decref(value);
        value = make_fault(ODD_TWICE);
    }
    put = put && json_object_set_new(row, name, value) == 0;
    if (!name) json_decref(value);
    json_decref(key);
    return put;
}

/* "KEY": VALUE; NULL where there is none, else behind it. */
static const char *read_member(json_t *row, const char *at, const char *end) {
    const char *key = skip_blanks(at, end);
    if (key >= end || *key != '"') return NULL;
    const char *colon = find_end(key, end, true), *value = skip_blanks(colon, end);
    if (value >= end || *value != ':') return NULL;
    value = skip_blanks(value + 1, end);
    const char *behind = find_end(value, end, false);
    json_t *name = read_value(key, (size_t)(colon - key), true);
    json_t *member = name ? read_value(value, (size_t)(behind - value), false) : NULL;
    return put_member(row, name, member) ? behind : NULL;
}

json_t *base_json_lenient(const char *text, size_t size) {
    const char *end = text + size, *at = skip_blanks(text, end);
    json_t *row = at < end && *at == '{' ? json_object() : NULL;
    if (!row) return NULL;
    do {
        at = read_member(row, at + 1, end);
    } while (at && at < end && *at == ',');
    if (at && at < end && *at == '}' && skip_blanks(at + 1, end) == end) return row;
    json_decref(row);
    return NULL;
}
