/* What a path holds, as a JSON object: what `sifr inspect --json` prints. */
#ifndef CLI_INSPECT_DESCRIBE_H
#define CLI_INSPECT_DESCRIBE_H

#include <jansson.h>

#include "base/errors.h"

/* "kind" is "model", "safetensors", "token store", "tokenizer", "config" or "checkpoint"; the
 * other members are those of its printer in cmd_inspect.c. The caller owns *out. SIFR_USAGE where
 * the path is none of these, SIFR_FAILED where it is one and damaged. */
sifr_status cli_describe(const char *path, json_t **out, sifr_error *error) SIFR_MUST_CHECK;

#endif
