/* What `sifr generate` and `sifr chat` share: their options, and where the text goes. */
#ifndef CLI_GENERATION_FLAGS_H
#define CLI_GENERATION_FLAGS_H

#include "cli/options.h"
#include "cli/read_flags.h"
#include "sifr/generate.h"

typedef struct cli_generation_flags {
    cli_read_flags read;
    int64_t max_new, top_k, seed;
    double temperature, top_p, min_p, repetition_penalty;
    cli_list stop;
    bool max_new_given, temperature_given, top_k_given, top_p_given, min_p_given, penalty_given;
    bool seed_given;
} cli_generation_flags;

enum { CLI_GENERATION_OPTIONS = CLI_READ_OPTIONS + 8 };

/* Options[CLI_GENERATION_OPTIONS], which point into *flags. */
void cli_generation_options(cli_generation_flags *flags, cli_option *options);

/* The flags for the library; they are borrowed. */
sifr_generator_options cli_generation_given(const cli_generation_flags *flags);

/* Writes to standard output, at once: a piece of sifr_generate_calls and of sifr_chat_answer. */
sifr_status cli_write_text(void *user, size_t text, const char *bytes, size_t size,
                           sifr_error *error) SIFR_MUST_CHECK;

#endif
