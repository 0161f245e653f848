/* The text that --help prints, wrapped at the terminal's width. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdio.h>

#include "cli/options.h"

/* The width of the terminal behind `stream`; 80 if it is not a terminal. */
int cli_columns(FILE *stream);

/* "--name ARGUMENT", "--name[=WORD]". */
void cli_option_shape(const cli_option *option, char *out, size_t size);

/* Prints usage, summary, grouped options, example and exit codes to standard output. */
void cli_print_help(const cli_usage *usage, const cli_option *options, size_t count);
void cli_print_exit_codes(void);

#endif
