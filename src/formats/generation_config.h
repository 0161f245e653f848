/* generation_config.json of a model folder: which tokens end a text, and how transformers' generate
 * draws where nobody says otherwise. */
#ifndef FORMATS_GENERATION_CONFIG_H
#define FORMATS_GENERATION_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"

enum { FORMATS_EOS_LIMIT = 8 }; /* ids in "eos_token_id" */

enum { FORMATS_STOP_LIMIT = 16, FORMATS_STOP_LENGTH = 128 }; /* the length with its NUL */

typedef struct formats_generation_config {
    int64_t bos_token_id; /* -1: not given */
    int64_t eos_token_ids[FORMATS_EOS_LIMIT];
    int eos_count;             /* 0: not given */
    bool do_sample;            /* false: the most likely token */
    double temperature, top_p; /* transformers' defaults where absent: 1, 1 */
    int64_t top_k;             /* likewise: 50; 0: all */
    double min_p;              /* likewise: 0 */
    double repetition_penalty; /* 1: none; also without do_sample */
    char stop_strings[FORMATS_STOP_LIMIT][FORMATS_STOP_LENGTH];
    int stop_count;
    int64_t max_new_tokens, max_length; /* -1: not given; max_length: with the prompt */
    char not_built[256]; /* names of keys that change what is drawn and are not built; or "" */
} formats_generation_config;

/* Of the folder; what transformers does by default where it has no such file. SIFR_USAGE for a
 * value out of range. */
sifr_status formats_generation_config_load(const char *folder, formats_generation_config *out,
                                           sifr_error *error) SIFR_MUST_CHECK;

#endif
