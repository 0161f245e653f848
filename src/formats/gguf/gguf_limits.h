/* What llama.cpp computes from constants of its own. */
#ifndef FORMATS_GGUF_LIMITS_H
#define FORMATS_GGUF_LIMITS_H

#include "formats/gguf/gguf_family.h"

/* Whether llama.cpp computes what config.json, as family->keys left it, describes: SIFR_USAGE, by
 * name, where no key of GGUF carries a value; what published models have so is said to `log`. */
sifr_status formats_gguf_limits(const formats_gguf_family *family, const json_t *config,
                                const char *where, const sifr_log *log,
                                sifr_error *error) SIFR_MUST_CHECK;

#endif
