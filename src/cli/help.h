/* The text that --help prints, wrapped at the terminal's width. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdio.h>

#include "cli/options.h"

/* Columns of the terminal that the stream is, 80 where it is none. */
int cli_columns(FILE *stream);

/* "--name ARGUMENT", "--name[=WORD]". */
void cli_option_shape(const cli_option *option, char *out, size_t size);

/* Usage, summary, options in their groups, example and exit codes, on standard output. */
void cli_print_help(const cli_usage *usage, const cli_option *options, size_t count);
void cli_print_exit_codes(void);

#endif
