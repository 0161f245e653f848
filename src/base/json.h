/* JSON through jansson, with the bounds that hostile input needs: size, depth, number of values,
 * duplicate keys and invalid UTF-8 are refused. Values are jansson's json_t; the owner calls
 * json_decref. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"

#define BASE_JSON_DEPTH 64
#define BASE_JSON_VALUES ((size_t)1 << 22)

/* Parses `size` bytes; `name` (a path) begins the message of an error, with line and column. A
 * number out of range is no error here: a whole number beyond 64 bits is a real, one beyond double
 * 9e307, and the readers below refuse both by the key's name. */
sifr_status base_json_parse(const char *text, size_t size, const char *name, json_t **out,
                            sifr_error *error) SIFR_MUST_CHECK;

/* The same of a text whose every key is read: a number out of range is an error. */
sifr_status base_json_parse_strict(const char *text, size_t size, const char *name, json_t **out,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* Reads a regular file of at most `limit` bytes and parses it. */
sifr_status base_json_load(const char *path, size_t limit, json_t **out,
                           sifr_error *error) SIFR_MUST_CHECK;

/* Members of an object, with a default for one that is absent or null. `where` names the file or
 * section in the message; a value of another type is SIFR_USAGE. Integers may be written as 5e8. */
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

/* Writes the value to a file (through a base_writer), indented by two, with a final newline. */
sifr_status base_json_save(const json_t *value, const char *path,
                           sifr_error *error) SIFR_MUST_CHECK;

#endif
