/* YAML through libyaml, as the JSON that PyYAML's safe loader would make of it. Values are
 * jansson's json_t; the owner calls json_decref. */
#ifndef BASE_YAML_H
#define BASE_YAML_H

#include <jansson.h>
#include <stddef.h>

#include "base/errors.h"

/* Aliases count what they repeat. */
#define BASE_YAML_VALUES ((size_t)1 << 16)

/* Parses one document of at most BASE_YAML_VALUES values, nested at most BASE_JSON_DEPTH deep.
 * Messages begin with `name`, and have line and column. Merge keys ("<<") are read; duplicate keys,
 * several documents and tags of a program's own are refused. Unlike PyYAML, 1e-4 is a number. An
 * empty text is null. */
sifr_status base_yaml_parse(const char *text, size_t size, const char *name, json_t **out,
                            sifr_error *error) SIFR_MUST_CHECK;

#endif
