/* Command options made from the rows of the config's key table; shared by `sifr train` and `sifr
 * plan`.
 */
#ifndef CLI_TRAIN_FLAGS_H
#define CLI_TRAIN_FLAGS_H

#include "cli/options.h"
#include "sifr/config.h"

/* The most flags, and the rows that they take together with their headings. */
enum { CLI_TRAIN_FLAGS = 96, CLI_TRAIN_OPTIONS = CLI_TRAIN_FLAGS + SIFR_CONFIG_GROUPS };

/* One row of the table, as an option. */
typedef struct cli_train_flag {
    sifr_config_flag flag;
    char help[640];
    const char *text;
    bool on, given;
    cli_list list;
} cli_train_flag;

typedef struct cli_train_flags {
    cli_train_flag rows[CLI_TRAIN_FLAGS];
    size_t count;
} cli_train_flags;

/* Fills options[CLI_TRAIN_OPTIONS] in groups, "Ranks" last; returns their number. The options point
 * into *flags, which must be zeroed before and must not move. */
size_t cli_train_flags_make(cli_train_flags *flags, cli_option *options);

/* Sets the flags that were given in the config. */
sifr_status cli_train_flags_set(const cli_train_flags *flags, sifr_config *config,
                                sifr_error *error) SIFR_MUST_CHECK;

void cli_train_flags_free(cli_train_flags *flags);

#endif
