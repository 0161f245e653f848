/* JSON through jansson, with limits for hostile input: size, depth and number of values are
 * bounded, duplicate keys and invalid UTF-8 are refused. Values are jansson's json_t; the owner
 * calls json_decref. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"

#define BASE_JSON_DEPTH 64
#define BASE_JSON_VALUES ((size_t)1 << 22)

/* Parses `size` bytes. Messages begin with `name` (a path), and have line and column. A number out
 * of range is no error here: an integer beyond 64 bits becomes a real, a number beyond double
 * becomes 9e307. The functions below refuse both, and name the key. */
sifr_status base_json_parse(const char *text, size_t size, const char *name, json_t **out,
                            sifr_error *error) SIFR_MUST_CHECK;

/* The same of a row: a piece of a file that begins at line `first` of it, behind `column`
 * characters, which messages have. An object that is no JSON but that Python's json reads (NaN,
 * \u0000, a lone surrogate, a key twice, a number out of range) has faults in place of the members
 * concerned, which no reader takes for a value: rows may have them in fields that are not read. */
sifr_status base_json_parse_from(const char *text, size_t size, const char *name, int64_t first,
                                 int64_t column, json_t **out, sifr_error *error) SIFR_MUST_CHECK;

/* What is wrong with the member, to stand behind its name in a message; NULL: it is no fault. */
const char *base_json_fault(const json_t *value);

/* Like base_json_parse, but a number out of range is an error. For texts of which every key is
 * read. */
sifr_status base_json_parse_strict(const char *text, size_t size, const char *name, json_t **out,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* Reads a regular file of at most `limit` bytes and parses it. */
sifr_status base_json_load(const char *path, size_t limit, json_t **out,
                           sifr_error *error) SIFR_MUST_CHECK;

/* Read a member of an object, or `fallback` if the member is absent or null. `where` names the file
 * or section in messages. A value of another type is SIFR_USAGE. Integers may be written as 5e8. */
sifr_status base_json_int(const json_t *object, const char *key, int64_t fallback, int64_t *out,
                          const char *where, sifr_error *error) SIFR_MUST_CHECK;
sifr_status base_json_double(const json_t *object, const char *key, double fallback, double *out,
                             const char *where, sifr_error *error) SIFR_MUST_CHECK;
sifr_status base_json_bool(const json_t *object, const char *key, bool fallback, bool *out,
                           const char *where, sifr_error *error) SIFR_MUST_CHECK;
/* *out points into `object`, or is `fallback`. */
sifr_status base_json_string(const json_t *object, const char *key, const char *fallback,
                             const char **out, const char *where,
                             sifr_error *error) SIFR_MUST_CHECK;

/* The value as text, in one line, with numbers as they were written: 0.8, not 0.80000000000000004.
 * NULL if memory ran out; free it. */
char *base_json_text(const json_t *value);

/* The number, or null if JSON cannot represent it: a new value. */
json_t *base_json_finite(double value);

/* Writes the value to a file (through a base_writer), indented by two spaces, with a final
 * newline. */
sifr_status base_json_save(const json_t *value, const char *path,
                           sifr_error *error) SIFR_MUST_CHECK;

/* A list whose elements are made one at a time: make(user, 0) and so on are new values, or NULL if
 * memory ran out. */
typedef struct base_json_list {
    const char *key;
    size_t count;
    json_t *(*make)(void *user, size_t index);
    void *user;
} base_json_list;

/* The same, with a last member `list->key`; as though `object`, which has others, had it. NULL: no
 * list. */
sifr_status base_json_save_with(const json_t *object, const base_json_list *list, const char *path,
                                sifr_error *error) SIFR_MUST_CHECK;

#endif
