/* What `sifr generate` and `sifr chat` share: their options, and where the text goes. */
#ifndef CLI_GENERATION_FLAGS_H
#define CLI_GENERATION_FLAGS_H

#include "cli/options.h"
#include "cli/read_model.h"
#include "infer/generation.h"

typedef struct cli_generation_flags {
    cli_read_model read;
    int64_t max_new, top_k, seed;
    double temperature, top_p, min_p, repetition_penalty;
    cli_list stop;
    bool max_new_given, temperature_given, top_k_given, top_p_given, min_p_given, penalty_given;
    bool seed_given;
} cli_generation_flags;

enum { CLI_GENERATION_OPTIONS = CLI_READ_MODEL_OPTIONS + 8 };

/* Defaults, and options[CLI_GENERATION_OPTIONS], which point into *flags. */
void cli_generation_options(cli_generation_flags *flags, cli_option *options);

/* Opens the model of the flags, which win over its generation_config.json and outlive the
 * generation. `name` is the command's. Close with infer_generation_close also after an error. */
sifr_status cli_generation_open(infer_generation *g, const cli_generation_flags *flags,
                                const char *name, sifr_error *error) SIFR_MUST_CHECK;

/* Writes to standard output, at once: an infer_take_text. */
sifr_status cli_write_text(void *user, const char *bytes, size_t size,
                           sifr_error *error) SIFR_MUST_CHECK;

#endif
