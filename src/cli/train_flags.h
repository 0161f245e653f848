/* The flags that the config's table makes, as options of a command: what `sifr train` takes, `sifr
 * plan` takes too. */
#ifndef CLI_TRAIN_FLAGS_H
#define CLI_TRAIN_FLAGS_H

#include "cli/options.h"
#include "config/config.h"

/* At most so many flags; and the rows that they take with their headings. */
enum {
    CLI_TRAIN_FLAGS = 64,
    CLI_TRAIN_GROUPS = 5,
    CLI_TRAIN_OPTIONS = CLI_TRAIN_FLAGS + CLI_TRAIN_GROUPS
};

/* One row of the table, as an option. */
typedef struct cli_train_flag {
    config_flag flag;
    char help[640];
    const char *text;
    bool on, given;
    cli_list list;
} cli_train_flag;

typedef struct cli_train_flags {
    cli_train_flag rows[CLI_TRAIN_FLAGS];
    size_t count;
} cli_train_flags;

/* Fills options[CLI_TRAIN_OPTIONS], in groups of which "Ranks" is the last, which point into
 * *flags; returns how many there are. Start with a zeroed *flags, which stays where it is. */
size_t cli_train_flags_make(cli_train_flags *flags, cli_option *options);

/* Hands what was given to the config. */
sifr_status cli_train_flags_set(const cli_train_flags *flags, sifr_config *config,
                                sifr_error *error) SIFR_MUST_CHECK;

void cli_train_flags_free(cli_train_flags *flags);

#endif
