/* The text that --help prints, wrapped at the terminal's width. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/options.h"

/* The width of the terminal behind `stream`; 80 if it is not a terminal. cli_columns: of text that
 * is set in lines, which have some width in any terminal. */
int cli_terminal_columns(FILE *stream);
int cli_columns(FILE *stream);

/* "--name ARGUMENT", "--name[=WORD]". */
void cli_option_shape(const cli_option *option, char *out, size_t size);

/* The text as a sentence: with a capital letter, unless it begins with a name, and a full stop.
 * Cut at `size`. */
void cli_sentence(const char *text, char *out, size_t size);

/* What each command's --help says of itself. */
#define CLI_HELP_TEXT "Prints this text."

/* An option of the program itself; false behind the last. */
bool cli_program_option_at(size_t index, cli_option *out);

/* A row of the exit codes; false behind the last. */
bool cli_exit_code_at(size_t index, const char **code, const char **meaning);

/* Prints usage, summary, grouped options, example and exit codes to standard output. */
void cli_print_help(const cli_usage *usage, const cli_option *options, size_t count);
void cli_print_exit_codes(void);
/* Prints the options of the program itself. */
void cli_print_program_options(void);

#endif
