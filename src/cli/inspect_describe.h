/* The contents of a path as the JSON object that `sifr inspect --json` prints. */
#ifndef CLI_INSPECT_DESCRIBE_H
#define CLI_INSPECT_DESCRIBE_H

#include <jansson.h>

#include "base/errors.h"

/* "kind" is "model", "safetensors", "token store", "tokenizer", "config" or "checkpoint"; the other
 * members are those that its printer in cmd_inspect.c reads. The caller owns *out. SIFR_USAGE if
 * the path is none of these, SIFR_FAILED if it is damaged. */
sifr_status cli_describe(const char *path, json_t **out, sifr_error *error) SIFR_MUST_CHECK;

#endif
